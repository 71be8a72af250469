"""What `make bench` runs: moves and transitions per second, each beside its peers in one run.

python -m benchmarks.run [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks import environment, training
from sb3_ext.training.zoo import versions

TABLES: dict[str, Any] = {"environment": environment, "training": training}


def machine() -> dict[str, Any]:
    """What the figures depend on, beside the code."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = [
            line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")
        ]
        name = models[0].split(":")[1].strip() if models else name
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "cores": os.cpu_count(),
        "cuda": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "load_average": load,
        "processor": name,
        "threads": torch.get_num_threads(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short repeats, for a first look")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results here")
    parser.add_argument("--only", choices=sorted(TABLES), help="one table")
    parser.add_argument(
        "--threads", type=int, default=1, help="threads of torch (default 1: two fight each other)"
    )
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    repeats, seconds = (3, 0.2) if args.quick else (5, 1.0)
    result: dict[str, Any] = {"machine": machine(), "versions": versions()}
    print(", ".join(f"{key} {value}" for key, value in result["machine"].items()))
    print(f"commit {result['versions']['commit']}; medians of {repeats} runs of {seconds} s\n")
    for name, module in TABLES.items():
        if args.only in (None, name):
            table: Callable[..., Any] = module.table
            result[name] = table(repeats, seconds)
            print(module.formatted(result[name]), end="\n\n", flush=True)
    if args.json is not None:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(result, indent=2) + "\n")
        print(f"written to {args.json}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
