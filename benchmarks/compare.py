"""The main rates of this tree beside those of another commit, in turn, in fresh processes.

  python -m benchmarks.compare af80493
  python -m benchmarks.compare main --only games3 ddqn --pairs 10
  python -m benchmarks.compare ../other/checkout

Both trees run with this Python and its packages, one thread each: base, this, this, base, base and
so on. The ratio of a rate is this tree's over the base's, the median over the pairs. Its interval
reaches from the least to the greatest pair (with many pairs the outermost are left out): each
pair is as likely above the true median as below it, whatever the noise, so the interval misses the
median with the printed probability. A rate counts as slower or faster if the interval excludes 1.

Exit code 1 when a rate is slower by more than --allowed, 2 for wrong input.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.rates import RATES
from benchmarks.results import ROOT, load_average
from benchmarks.run import Parser, number, positive, progress

LEAST_PAIRS = 6  # 3 % of the intervals of six pairs miss
MISSES = 0.05 / len(RATES)  # each, so that one in twenty whole comparisons says something false
THREADS = ("OMP", "MKL", "OPENBLAS", "NUMBA")


class NotMeasured(Exception):
    """A tree that cannot run a rate; the message is its last line."""


@dataclass
class Ratio:
    """Ratios of pairs, sorted, with the interval that holds their median."""

    pairs: list[float]

    def __post_init__(self) -> None:
        self.pairs.sort()
        number, left_out = len(self.pairs), 0
        while 2 * (left_out + 1) < number and self.missed(left_out + 1) <= MISSES:
            left_out += 1
        self.median = statistics.median(self.pairs)
        self.low, self.high = self.pairs[left_out], self.pairs[-1 - left_out]
        self.chance = self.missed(left_out)

    def missed(self, left_out: int) -> float:
        """The chance that an interval without so many pairs on each side misses the true median."""
        number = len(self.pairs)
        return sum(math.comb(number, k) for k in range(left_out + 1)) / 2 ** (number - 1)

    def verdict(self, allowed: float = 0.0) -> str:
        if self.high < 1.0:
            return "slower" if self.high < 1.0 - allowed else "slower, within what is allowed"
        return "faster" if self.low > 1.0 else "no difference shown"


@contextmanager
def tree(base: str) -> Iterator[Path]:
    """The folder of a checkout, or a commit in a folder for as long as it is needed."""
    if (Path(base) / "resgym").is_dir():
        yield Path(base).resolve()
        return
    git = ["git", "-C", str(ROOT)]
    found = subprocess.run(
        [*git, "rev-parse", "--verify", "--quiet", f"{base}^{{commit}}"],
        capture_output=True,
        text=True,
    )
    if found.returncode:
        raise ValueError(f"BASE must be a commit or the folder of a checkout, got {base!r}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "base"
        add = [*git, "worktree", "add", "--detach", "--quiet", str(path), found.stdout.strip()]
        subprocess.run(add, check=True)
        try:
            yield path
        finally:
            subprocess.run([*git, "worktree", "remove", "--force", str(path)], check=True)


def rate(folder: Path, name: str, seconds: float) -> float:
    """One rate of a tree, by a process of its own with this file's idea of what to measure."""
    environment = {**os.environ, **{f"{each}_NUM_THREADS": "1" for each in THREADS}}
    environment["PYTHONPATH"] = str(folder)
    source = (ROOT / "benchmarks" / "rates.py").read_text(encoding="utf-8")
    command = [sys.executable, "-c", source, name, str(seconds)]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if ran.returncode:
        raise NotMeasured((ran.stderr.strip() or f"exit code {ran.returncode}").splitlines()[-1])
    return float(ran.stdout.split()[-1])


def compared(base: Path, name: str, pairs: int, seconds: float) -> tuple[list[float], Ratio]:
    """The base's rates and the ratios; a pair before them, which compiles, does not count."""
    folders, bases, ratios = [base, ROOT], [], []
    for pair in range(-1, pairs):
        progress(f"{name}: pair {max(pair, 0)} of {pairs}")
        found = {folder: rate(folder, name, seconds) for folder in folders}
        folders.reverse()
        if pair >= 0:
            bases.append(found[base])
            ratios.append(found[ROOT] / found[base])
    progress("")
    return bases, Ratio(ratios)


def parser() -> argparse.ArgumentParser:
    result = Parser(
        prog="python -m benchmarks.compare",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="rates:\n" + "\n".join(f"  {name:12}{about}" for name, (about, _) in RATES.items()),
    )
    add = result.add_argument
    add("base", metavar="BASE", help="a commit, or the folder of a checkout")
    add("--only", nargs="+", choices=[*RATES], default=[*RATES], help="some of the rates")
    add("--pairs", type=number(LEAST_PAIRS, 1000), default=8, help="at least 6 (default 8)")
    add("--seconds", type=positive, default=2.0, help="of each process, timed (default 2)")
    add("--allowed", type=float, default=0.0, help="greatest loss that is allowed: 0.02 is 2 %%")
    return result


def run(args: argparse.Namespace) -> int:
    if not 0.0 <= args.allowed < 1.0:
        raise ValueError(f"--allowed must be from 0 to 1, got {args.allowed}")
    worst = 0
    print(f"load average {load_average()} before, {args.pairs} pairs of {args.seconds:g} s")
    with tree(args.base) as base:
        for name in args.only:
            about = RATES[name][0]
            try:
                bases, ratio = compared(base, name, args.pairs, args.seconds)
            except NotMeasured as error:
                print(f"{name:12}not measured: {error}", flush=True)
                continue
            verdict = ratio.verdict(args.allowed)
            worst |= verdict == "slower"
            print(
                f"{name:12}{ratio.median:6.3f}  ({ratio.low:.3f} to {ratio.high:.3f}, missed in "
                f"{100 * ratio.chance:.1f} %)  {verdict}; base {statistics.median(bases):,.0f} "
                f"{about}",
                flush=True,
            )
    return worst


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        return run(parser().parse_args(arguments))
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        print(f"python -m benchmarks.compare: {str(error).splitlines()[0]}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
