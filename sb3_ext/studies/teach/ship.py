"""One small file of a trained player, as those that come with the package.

python -m sb3_ext.teach ship runs/teach/everything/taught --out taught_host.safetensors --half
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from resgym.files import output_file, write_file
from sb3_ext.callbacks.rho_evaluation import seat_of
from sb3_ext.checkpoints.policy_file import policy_bytes
from sb3_ext.training.loading import load_policy


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add = parser.add_argument
    add("model", type=Path, help="a saved host or agent: folder, checkpoint or .zip")
    add("--out", required=True, type=Path, metavar="FILE", help=".safetensors")
    add("--half", action="store_true", help="round the weights to float16: half of the size")


def run(args: argparse.Namespace, command: Sequence[str]) -> int:
    """Runs the command; see `sb3_ext.studies.teach.cli.main`."""
    output_file(args.out, (".safetensors",), "out")
    policy: Any = load_policy(args.model)
    if len(getattr(seat_of(policy)[1], "shape", None) or ()) != 2:
        raise ValueError(
            f"model must be a host's or an agent's, observes {policy.observation_space}"
        )
    notes = {"made by": " ".join(command)}
    write_file(args.out, policy_bytes(policy, notes, args.half))
    print(f"{args.out}: {args.out.stat().st_size:,} bytes")
    return 0
