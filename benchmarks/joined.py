"""The host of several trainings of ``play/finish.yml``: the mean of what their networks think.

  python -m benchmarks.joined RUN RUN --out played_host.safetensors

A RUN is a folder of ``sb3_ext.train --algo minimax`` with ``--conf-file play/finish.yml``. The
shipped player ``played`` is of its seeds 0 and 1.
Networks side by side are one wide network: its layers do not mix them, and the last one takes the
mean. The file holds 16-bit weights.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from resgym.cli import OneLineParser
from resgym.files import write_file
from sb3_ext.checkpoints.models import policy_bytes
from sb3_ext.checkpoints.policy_description import POLICIES, build_policy, describe_policy
from sb3_ext.ddqn import QPolicy
from sb3_ext.train.loading import load_policy

EXTRACTOR = "features_extractor_kwargs"


def columns(name: str, layer: Tensor, narrow: dict[str, Any]) -> list[int]:
    """The widths of what a layer gets from its own network; what both get comes behind."""
    if name.startswith("features_extractor.context.0"):
        return [narrow["point_net"][-1], narrow["pair_net"][-1]]
    if name.startswith("features_extractor.head.0"):
        return [narrow["context_net"][-1]] * 2
    first = ("features_extractor.encoder.0", "features_extractor.pair_encoder.0")
    return [] if name.startswith(first) else [layer.shape[1]]


def side_by_side(layers: Sequence[Tensor], groups: Sequence[int]) -> Tensor:
    """One layer of several, group by group; the columns after the groups are shared."""
    number, rows = len(layers), len(layers[0])
    shared = layers[0].shape[1] - sum(groups)
    found = layers[0].new_zeros(number * rows, number * sum(groups) + shared)
    for place, layer in enumerate(layers):
        own, parts = found[place * rows : (place + 1) * rows], layer.split([*groups, shared], 1)
        at = 0
        for size, part in zip(groups, parts, strict=False):
            own[:, at + place * size : at + (place + 1) * size] = part
            at += number * size
        own[:, at:] = parts[-1]
    return found


def widths(arguments: dict[str, Any], narrow: dict[str, Any]) -> list[Any]:
    """The layers of all nets of a policy with the extractor ``point_pairs``."""
    nets = [arguments["net_arch"], *(net for name, net in narrow.items() if name.endswith("net"))]
    return [layer for net in nets for layer in net]


def join(policies: Sequence[Any]) -> Any:
    """The policy whose values are the mean of those of policies of one shape.

    Raises:
        ValueError: there is one only, their shapes differ, or are not that of ``play/finish.yml``
            up to widths.
    """
    number, shapes = len(policies), [describe_policy(policy) for policy in policies]
    if number == 1:
        raise ValueError("RUN: got one; expected two or more")
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError("RUN: got networks of several shapes; expected one shape")
    description = copy.deepcopy(shapes[0])
    arguments = description["arguments"]
    narrow = copy.deepcopy(arguments.get(EXTRACTOR))
    if (
        not issubclass(POLICIES.resolve(description["class"]), QPolicy)
        or arguments["features_extractor_class"] != "point_pairs"
        or arguments["dueling"]
        or not all(type(width) is int for width in widths(arguments, narrow))
    ):
        raise ValueError(f"RUN: got networks of {arguments}; expected those of play/finish.yml")
    for nets, name in [(arguments, "net_arch"), *((arguments[EXTRACTOR], n) for n in narrow)]:
        if name.endswith(("net", "arch")):
            nets[name] = [number * width for width in nets[name]]
    joined, weights = build_policy(description), {}
    last = list(policies[0].q_net.state_dict())[-2].rpartition(".")[0]
    for name in joined.q_net.state_dict():
        layers = [policy.q_net.state_dict()[name] for policy in policies]
        if name.startswith(last):
            wide = layers[0].ndim == 2
            weights[name] = (torch.cat(layers, 1) if wide else sum(layers)) / number
        elif layers[0].ndim == 1:
            weights[name] = torch.cat(layers)
        else:
            weights[name] = side_by_side(layers, columns(name, layers[0], narrow))
    joined.q_net.load_state_dict(weights)
    return joined


def main() -> None:
    parser = OneLineParser(
        prog="benchmarks.joined",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN", help="two or more of one shape"
    )
    parser.add_argument("--out", required=True, type=Path, help="file of the player, .safetensors")
    args = parser.parse_args()
    try:
        joined = join([load_policy(run) for run in args.runs])
        notes = {"made by": "benchmarks.joined"}
        write_file(args.out, policy_bytes(joined, notes, half=True))
    except (OSError, ValueError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
