"""One small file of a trained host, as those that come with the package.

python -m sb3_ext.teach ship runs/teach/everything/taught --out taught_host.safetensors --half
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from safetensors.torch import save

from resgym.files import output_file, write_file
from sb3_ext.checkpoints.policy_description import describe_policy
from sb3_ext.studies.teach.shipped import DIMENSION
from sb3_ext.training.loading import load_policy

__all__ = ["add_arguments", "run", "write_shipped"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add = parser.add_argument
    add("model", type=Path, help="a saved host in three axes: folder, checkpoint or .zip")
    add("--out", required=True, type=Path, metavar="FILE", help=".safetensors")
    add("--half", action="store_true", help="round the weights to float16: half of the size")


def run(args: argparse.Namespace, command: Sequence[str]) -> int:
    """Runs the command; see `sb3_ext.studies.teach.cli.main`."""
    output_file(args.out, (".safetensors",), "out")
    notes = {"made by": " ".join(command)}
    write_shipped(load_policy(args.model), args.out, notes, half=args.half)
    print(f"{args.out}: {args.out.stat().st_size:,} bytes")
    return 0


def write_shipped(
    policy: Any, path: Path, notes: Mapping[str, str] | None = None, half: bool = False
) -> None:
    """Writes the online network of a host's policy in three axes as one small file.

    ``notes`` are kept in the file; ``half`` rounds the weights to float16.

    Raises:
        ValueError: the policy plays another seat or dimension, or has no description.
    """
    shape: tuple[int, ...] = getattr(policy.observation_space, "shape", None) or ()
    if len(shape) != 2 or shape[1] != DIMENSION:
        raise ValueError(f"policy must be a host's in three axes, observes {shape}")
    weights = {name: w.detach().cpu().contiguous() for name, w in policy.q_net.state_dict().items()}
    if half:
        weights = {name: w.half() for name, w in weights.items()}
    described = {**(notes or {}), "policy": json.dumps(describe_policy(policy))}
    write_file(path, save(weights, described))
