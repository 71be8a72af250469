"""One small file of a trained host, as those that come with the package.

python -m sb3_ext.teach ship runs/teach/everything/taught --out taught_host.safetensors --half
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from sb3_ext.studies.teach.shipped import write_shipped
from sb3_ext.training.loading import load_policy

__all__ = ["HELP", "add_arguments", "run"]

HELP = "write a trained host as one small file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument(
        "model", type=Path, help="a saved host in three axes: folder, checkpoint or .zip"
    )
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help=".safetensors")
    parser.add_argument(
        "--half", action="store_true", help="round the weights to float16: half of the size"
    )
    parser.add_argument(
        "--origin", metavar="TEXT", help="where the network comes from, kept in the file"
    )


def run(args: argparse.Namespace, command: Sequence[str]) -> int:
    """Runs the command; see `sb3_ext.studies.teach.cli.main`."""
    if args.out.suffix != ".safetensors":
        raise ValueError(f"out must end in .safetensors, got {args.out}")
    if not args.out.parent.is_dir():
        raise ValueError(f"out: there is no folder {args.out.parent}")
    notes = {"made by": " ".join(command)}
    if args.origin is not None:
        notes["from"] = args.origin
    write_shipped(load_policy(args.model), args.out, notes, half=args.half)
    print(f"{args.out}: {args.out.stat().st_size:,} bytes")
    return 0
