"""A host of the extractor ``any_size`` with more units and the same values, from which to continue.

  python -m benchmarks.widened PLAYER --pair-width 80 --width 112 --out RUN
  python -m sb3_ext.train --algo minimax ... --init-from RUN

What was there hears nothing of the new units at first; they have random weights.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch

from resgym.cli import OneLineParser
from sb3_ext.checkpoints.policy_description import build_policy, describe_policy
from sb3_ext.runs.checkpoint import checkpoint_name, save_checkpoint
from sb3_ext.train.loading import load_policy


def widen(policy: Any, pair_width: int, width: int, seed: int = 0) -> Any:
    """The same values from a network of these widths, which are not below those of the policy.

    Raises:
        ValueError: it has another extractor, or a width is below its own.
    """
    description = describe_policy(policy)
    arguments = description["arguments"]
    if arguments["features_extractor_class"] != "any_size":
        raise ValueError(f"PLAYER: got networks of {arguments}; expected the extractor any_size")
    arguments["features_extractor_kwargs"] = {"pair_width": pair_width, "width": width}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        wide = build_policy(description)
    narrow = policy.q_net.state_dict()
    pairs = narrow["features_extractor.pairs.0.bias"].numel()
    weights = wide.q_net.state_dict()
    for name, layer in weights.items():
        old = narrow[name]
        if any(new < before for new, before in zip(layer.shape, old.shape, strict=True)):
            raise ValueError(f"width: got less than those of PLAYER in {name}")
        rows = len(old)
        if layer.ndim == 1:
            layer[:rows] = old
            continue
        columns = torch.arange(old.shape[1])
        if name.startswith("features_extractor.entries.0"):  # other features come behind the pairs'
            columns[pairs:] += layer.shape[1] - old.shape[1]
        layer[:rows] = 0.0
        layer[:rows, columns] = old
    for network in (wide.q_net, wide.q_net_target):
        network.load_state_dict(weights)
    return wide


def main() -> None:
    parser = OneLineParser(
        prog="benchmarks.widened",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("player", metavar="PLAYER", help="a saved player or the folder of a run")
    add("--pair-width", type=int, required=True, help="features of pairs")
    add("--width", type=int, required=True, help="features of entries, axes and actions")
    add("--out", required=True, type=Path, metavar="RUN", help="folder of the checkpoint")
    args = parser.parse_args()
    try:
        wide = widen(load_policy(args.player), args.pair_width, args.width)
        print(save_checkpoint(args.out / checkpoint_name(0), {"policy": wide.state_dict()}))
    except (OSError, ValueError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
