"""What `make bench` runs: three rates, each beside its peers, measured in one run.

  environment   random players through VectorEnv.step, restarts and observations included
  policy        the same moves, each after a forward pass of a [256, 256] network
  training      DDQN.learn: moves, storing, and an update of 256 transitions per parallel move

A rate is whole moves (host and agent) per second, the median of the repeats with the least and the
greatest beside it. Subjects of one size take turns after every repeat. Results are written after
every size, so that an interrupted run keeps what it has; a second run of the same commit, machine
and settings on the same file adds to it. A size whose repeats lie too far apart is shown, not
written: the machine is busy with something else.

examples:
  make bench BENCH_ARGS=--quick
  python -m benchmarks.run --list
  python -m benchmarks.run --dimensions 3 --json runs/bench/slices.json
  python -m benchmarks.run --dimensions 10 --json runs/bench/slices.json    (adds to it)
  python -m benchmarks.run --rates environment --games 2048 --subjects numba torch
  python -m benchmarks.report runs/bench/slices.json                        (page and picture)
"""

from __future__ import annotations

import argparse
import itertools
import os
import signal
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import torch

from benchmarks import environment, training
from benchmarks.measure import side_by_side
from benchmarks.results import ROOT, Results, ResultsError, case, commit
from resgym.kernels import dispatch

RATES: dict[str, Callable[..., list[tuple[str, Callable[[], Any]]]]] = {
    "environment": environment.makers,
    "policy": training.policy_makers,
    "training": training.training_makers,
}
GAMES = (1, 16, 256, 1_024, 4_096, 16_384, 65_536)
# Numbers of games by rate, then by points of a start; dimensions are 3, 5, 10.
FULL = {
    "environment": {20: GAMES, 50: (1, 256, 4_096, 65_536)},
    "policy": {20: (1, 16, 256, 1_024, 4_096, 16_384), 50: (1_024,)},
    "training": {20: (1, 16, 256, 1_024, 4_096), 50: (1_024,)},
}
QUICK = {
    "environment": {20: (1, 1_024, 4_096), 50: (4_096,)},
    "policy": {20: (1_024,)},
    "training": {20: (1_024,)},
}
MORE_THREADS_FROM = 1_024  # games from which a second number of threads is tried


class Size(NamedTuple):
    rate: str
    dimension: int
    points: int
    games: int


class Parser(argparse.ArgumentParser):
    """As argparse, with errors in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see --help)\n")


def number(least: int, greatest: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            value = int(text.replace(",", "").replace("_", ""))
        except ValueError:
            value = least - 1
        if not least <= value <= greatest:
            raise argparse.ArgumentTypeError(
                f"must be a whole number from {least} to {greatest}, got {text!r}"
            )
        return value

    return parse


def positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 3600:
        raise argparse.ArgumentTypeError(f"must be above 0 and at most 3600, got {text!r}")
    return value


def parser() -> argparse.ArgumentParser:
    result = Parser(
        prog="python -m benchmarks.run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = result.add_argument
    add("--quick", action="store_true", help="few sizes, short repeats: about a minute")
    add("--list", action="store_true", help="print what would be measured, and stop")
    add("--json", type=Path, metavar="FILE", help="results (default runs/bench/COMMIT.json)")
    group = result.add_argument_group("fewer or other sizes")
    add = group.add_argument
    add("--rates", nargs="+", choices=[*RATES], default=[*RATES], help="which of the three")
    add("--dimensions", nargs="+", type=number(2, 10), metavar="D", help="axes, 2 to 10")
    add("--points", nargs="+", type=number(2, 1_000), metavar="P", help="points of a start")
    add("--games", nargs="+", type=number(1, 1 << 22), metavar="B", help="parallel games")
    add("--subjects", nargs="+", metavar="WORD", help="those with one of these in their name")
    add("--devices", nargs="+", metavar="DEVICE", help="cpu, cuda, cuda:1 (default all there are)")
    add("--threads", nargs="+", type=number(1, 1_024), metavar="T", help="default 1 and all cores")
    group = result.add_argument_group("length")
    add = group.add_argument
    add("--repeats", type=number(1, 1_000), help="default 5")
    add("--seconds", type=positive, help="of each, at least (default 0.2; quick 0.05)")
    add(
        "--cpu-time",
        action="store_true",
        help="rates per CPU second of this process and its threads, for a busy machine",
    )
    add(
        "--noise",
        type=positive,
        default=0.35,
        metavar="SHARE",
        help="repeats further apart than this share of their median are not written (default 0.35)",
    )
    return result


def sizes(args: argparse.Namespace) -> list[Size]:
    """What to measure, sizes of one dimension together."""
    grid = QUICK if args.quick else FULL
    usual = (3, 10) if args.quick else (3, 5, 10)
    found = []
    for dimension, rate in itertools.product(args.dimensions or usual, args.rates):
        for points in args.points or grid[rate]:
            for games in args.games or grid[rate].get(points, (1_024,)):
                found.append(Size(rate, dimension, points, games))
    return found


def devices(asked: Sequence[str] | None) -> list[str]:
    if asked is None:
        return ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    for name in asked:
        try:
            torch.empty(1, device=torch.device(name))
        except (RuntimeError, AssertionError) as error:
            reason = str(error).splitlines()[0]
            raise ValueError(f"--devices: {name!r} is not there ({reason})") from error
    return list(asked)


def chosen(
    size: Size, device: str, threads: tuple[int, ...], words: Sequence[str] | None
) -> list[tuple[str, Callable[[], Any]]]:
    makers = RATES[size.rate](size.dimension, size.points, size.games, device, threads)
    if words is None:
        return makers
    return [each for each in makers if any(word.lower() in each[0].lower() for word in words)]


def progress(text: str) -> None:
    """A line that the next one replaces, on a terminal only."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def collection(case: dict[str, Any]) -> str:
    share = case.get("collection_share")
    return "" if share is None else f"  {100 * share:.1f} % of it neither environment nor updates"


def print_found(cases: list[dict[str, Any]], absent: dict[str, str]) -> None:
    best = max((each["median"] for each in cases), default=1.0)
    for each in cases:
        threads = {None: "own threads", 1: "1 thread"}.get(
            each["threads"], f"{each['threads']} threads"
        )
        print(
            f"  {each['subject']:32} {each['device']:6} {threads:12}"
            f"{each['median']:>13,.0f}/s  ({each['min']:,.0f} to {each['max']:,.0f})"
            f"  {100 * each['median'] / best:5.1f} %{collection(each)}"
        )
    for name, reason in absent.items():
        print(f"  {name.split(',')[0]:32} not measured: {reason}")
    sys.stdout.flush()


def measure(size: Size, device: str, args: argparse.Namespace, say: Callable[[str], None]) -> Any:
    threads = args.threads or sorted({1, os.cpu_count() or 1})
    usable = tuple(threads) if args.threads or size.games >= MORE_THREADS_FROM else (1,)
    makers = chosen(size, device, usable, args.subjects)
    found, absent, about = side_by_side(makers, args.repeats, args.seconds, say, args.cpu_time)
    cases = [
        case(
            {
                **size._asdict(),
                "device": device,
                "subject": name.rpartition(", ")[0] if name[-1].isdigit() else name,
                "threads": about[name]["threads"],
            },
            each.rates,
            **{name: round(value, 3) for name, value in each.figures.items()},
            first_step_seconds=round(each.warm_up_seconds, 3),
        )
        for name, each in found.items()
    ]
    return cases, absent


def noise(cases: list[dict[str, Any]]) -> float:
    """How far apart repeats lie, as a share of their median: the median of the cases."""
    apart = [(each["max"] - each["min"]) / each["median"] for each in cases]
    return statistics.median(apart) if apart else 0.0


def stop(*_: Any) -> NoReturn:
    raise KeyboardInterrupt


def run(args: argparse.Namespace) -> int:
    args.repeats = args.repeats or 5
    args.seconds = args.seconds or (0.05 if args.quick else 0.2)
    found_devices = devices(args.devices)
    if args.cpu_time and found_devices != ["cpu"]:
        raise ValueError(f"--cpu-time: for --devices cpu only, got {' '.join(found_devices)}")
    todo = [(size, device) for size in sizes(args) for device in found_devices]
    if args.list:
        for size, device in todo:
            names = [name for name, _ in chosen(size, device, (1,), args.subjects)]
            subjects = "; ".join(name.removesuffix(", 1") for name in names)
            print(
                f"{size.rate:12} d = {size.dimension}, P = {size.points}, "
                f"{size.games:,} games, {device}: {subjects or 'nothing'}"
            )
        return 0
    if args.subjects and not any(chosen(s, d, (1,), args.subjects) for s, d in todo):
        raise ValueError(f"--subjects: none has {' or '.join(args.subjects)} in its name")
    path = args.json or ROOT / "runs" / "bench" / f"{commit() or 'unknown'}.json"
    if args.json is None and "dirty" in path.name:
        path.unlink(missing_ok=True)  # files were changed: what is in it may be of other code
    settings = {
        "exploration": training.EXPLORATION,
        "max_value": 20,
        "net_arch": training.NET_ARCH,
        "opponent": "random",
        "repeats": args.repeats,
        "seconds": args.seconds,
        "seed": 0,
        "update_batch": training.BATCH,
    }
    if args.cpu_time:
        settings["clock"] = "CPU time"
    results = Results(path, settings)
    content = results.content
    print(", ".join(f"{k} {v}" for k, v in content["machine"].items() if v is not None))
    print(f"commit {content['commit']}, load average {content['sittings'][-1]['load_before']}")
    before = signal.signal(signal.SIGTERM, stop)
    begun, noisy = time.monotonic(), 0
    try:
        for index, (size, device) in enumerate(todo):
            title = (
                f"{size.rate}, d = {size.dimension}, P = {size.points}, {size.games:,} games, "
                f"{device}"
            )
            minutes = (time.monotonic() - begun) / 60
            print(f"[{index + 1}/{len(todo)}, {minutes:.1f} min] {title}", flush=True)
            cases, absent = measure(size, device, args, progress)
            progress("")
            print_found(cases, absent)
            if noise(cases) <= args.noise:
                results.add(cases)
            else:
                noisy += 1
                print(f"  not written: repeats lie {100 * noise(cases):.0f} % apart")
    except KeyboardInterrupt:
        progress("")
        kept = f"{len(results.cases)} cases are kept in {path}" if results.cases else "no results"
        print(f"stopped: {kept}", file=sys.stderr)
        return 130
    finally:
        signal.signal(signal.SIGTERM, before)
    if noisy:
        print(
            f"{noisy} of {len(todo)} sizes not written: the machine is too noisy", file=sys.stderr
        )
    if results.cases:
        print(
            f"{len(results.cases)} cases in {path}; python -m benchmarks.report {path} shows them"
        )
    return min(noisy, 1)


def main(arguments: Sequence[str] | None = None) -> int:
    args = parser().parse_args(arguments)
    # Short runs of many algorithms: their advice about evaluation wrappers is not for us.
    warnings.filterwarnings("ignore", module="stable_baselines3")
    threads = torch.get_num_threads()
    dispatch.PATIENCE = 0.0  # compiled from the first step on
    try:
        return run(args)
    except (OSError, ResultsError, ValueError) as error:
        print(f"python -m benchmarks.run: {str(error).splitlines()[0]}", file=sys.stderr)
        return 2
    finally:
        torch.set_num_threads(threads)


if __name__ == "__main__":
    sys.exit(main())
