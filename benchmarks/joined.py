"""The host of two trainings of ``play/full.yml``: the mean of what both networks think.

  python -m benchmarks.joined RUN RUN --out played_host.safetensors

A RUN is a folder of ``sb3_ext.train --algo minimax --conf-file play/full.yml``. The shipped player
``played`` is of the seeds 1 and 2. Two networks side by side are one of twice the width: its layers
do not mix them, and the last one takes the mean. The file holds 16-bit weights.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from resgym.files import write_file
from sb3_ext.checkpoints.policy_description import build_policy, describe_policy
from sb3_ext.checkpoints.policy_file import policy_bytes
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


def join(policies: Sequence[Any]) -> Any:
    """The policy whose values are the mean of those of policies of one shape."""
    number, description = len(policies), copy.deepcopy(describe_policy(policies[0]))
    arguments = description["arguments"]
    narrow = copy.deepcopy(arguments[EXTRACTOR])
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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--out", required=True, type=Path)
    args = parser.parse_args()
    policies = [load_policy(run) for run in args.runs]
    joined = join(policies)
    notes = {"made by": "benchmarks.joined"}
    write_file(args.out, policy_bytes(joined, notes, half=True))


if __name__ == "__main__":
    main()
