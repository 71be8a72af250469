"""First answers: seconds of a whole process, beside those of `import torch`.

  python -m benchmarks.cold
  python -m benchmarks.cold --runs 9 --only rho solve

*Cold* has an empty folder for compiled code, which every run fills anew. *Warm* has one that a run
of every command has filled. All commands take turns, in fresh processes; the median counts. A `>`
marks a time above the project's limit for a quiet machine of two cores: the exit code is then 1.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from benchmarks.results import ROOT, load_average
from benchmarks.run import Parser, number, progress

_DRAW = Random(11).randint
START = [[_DRAW(0, 20) for _ in range(3)] for _ in range(20)]
STEP = """
import gymnasium, resgym, torch
env = gymnasium.make_vec("resgym/HironakaHost-v0", num_envs=8, opponent="random")
env.reset(seed=0)
env.step(torch.zeros(8, dtype=torch.int64))
"""


class Subject(NamedTuple):
    arguments: list[str]
    cold: float | None
    """The bound in seconds."""
    warm: float | None


def _resgym(*arguments: str) -> list[str]:
    return ["-m", "resgym", *arguments]


SUBJECTS = {
    "import torch": Subject(["-c", "import torch"], None, None),
    "make_vec": Subject(["-c", STEP], 5.0, None),
    "rho": Subject(_resgym("rho", "zeillinger", "random"), 3.0, 2.5),
    "solve": Subject(_resgym("solve", str(START)), 2.0, 0.6),
    "tree zeillinger": Subject(_resgym("tree", "E8", "--host", "zeillinger"), 3.0, 0.5),
    "tree taught": Subject(_resgym("tree", "E8", "--host", "taught"), 3.0, 2.5),
    "scoreboard": Subject(_resgym("scoreboard"), None, None),
}


def seconds(arguments: list[str], caches: str) -> float:
    """Of one process that keeps its compiled code in a folder, and byte code where Python does."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": caches, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    begin = time.perf_counter()
    ran = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    if ran.returncode:
        raise ValueError(f"{arguments[-1]!r:.60}: {ran.stderr.strip() or ran.returncode}")
    return time.perf_counter() - begin


def measured(names: Sequence[str], runs: int) -> dict[str, tuple[list[float], list[float]]]:
    """The seconds of every run by name, cold and warm."""
    found: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in names}
    with tempfile.TemporaryDirectory() as warm:
        for name in names:
            seconds(SUBJECTS[name].arguments, warm)
        for run in range(runs):
            for name in names:
                progress(f"{name}: run {run + 1} of {runs}")
                with tempfile.TemporaryDirectory() as empty:
                    found[name][0].append(seconds(SUBJECTS[name].arguments, empty))
                found[name][1].append(seconds(SUBJECTS[name].arguments, warm))
    progress("")
    return found


def parser() -> argparse.ArgumentParser:
    result = Parser(
        prog="python -m benchmarks.cold",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = [*SUBJECTS][1:]
    result.add_argument("--only", nargs="+", choices=names, default=names, help="some of them")
    result.add_argument("--runs", type=number(1, 1000), default=5, help="(default 5)")
    return result


def run(args: argparse.Namespace) -> int:
    print(f"load average {load_average()} before, medians of {args.runs} runs in seconds")
    print(f"{'':18}{'cold':>7}{'x torch':>9}{'bound':>7}  {'warm':>7}{'x torch':>9}{'bound':>7}")
    found = measured(["import torch", *args.only], args.runs)
    torch, above = statistics.median([*found["import torch"][0], *found["import torch"][1]]), False
    for name, both in found.items():
        line = f"{name:18}"
        for values, bound in zip(both, SUBJECTS[name][1:], strict=True):
            middle = statistics.median(values)
            over = bound is not None and middle > bound
            above |= over
            line += f"{'>' if over else ' '}{middle:6.2f}{middle / torch:9.1f}{bound or '':>7}  "
        print(line.rstrip(), flush=True)
    return int(above)


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        return run(parser().parse_args(arguments))
    except (OSError, ValueError) as error:
        print(f"python -m benchmarks.cold: {str(error).splitlines()[0]}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
