"""Certify many values, and print two tables: ``python -m benchmarks.certificates``.

Every certificate is read and checked again. Times are CPU seconds of this process. Starts are drawn
with seed 0.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import resgym
from resgym import functional as game
from resgym.certificate_check import check
from resgym.polynomials.singularities import singularity_names

CUSPS = ["T3,3,3", "T3,3,4", "T3,4,5", "T4,4,4", "T2,3,7", "T2,4,5", "T2,5,6"]


def starts(number: int, dimension: int, points: int, top: int) -> dict[str, list[list[int]]]:
    spec = resgym.GameSpec(dimension=dimension, max_num_points=points, max_value=top)
    state = game.starts(spec, number, seed=0)
    rows = zip(state.points.tolist(), state.count.tolist(), strict=True)
    return {f"{dimension}-{k:04}": position[:count] for k, (position, count) in enumerate(rows)}


def certified(position: Any, objective: Any, file: Path | None) -> tuple[float, ...] | None:
    """Return value, lines, kB, and seconds to solve, write and check; None if not proved."""
    times = [time.process_time()]
    solution = resgym.solve(position, objective)
    times.append(time.process_time())
    text = solution.certificate()
    times.append(time.process_time())
    says = check(text.splitlines()).says
    times.append(time.process_time())
    if solution.value is None or says != (objective, solution.value, solution.value):
        return None
    if file is not None:
        file.write_text(text)
    seconds = [later - before for before, later in pairwise(times)]
    return solution.value, len(text.splitlines()), len(text) / 1000, *seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=1000, help="starts of 20 points, three axes")
    parser.add_argument("--four", type=int, default=50, help="starts of 5 points, four axes")
    parser.add_argument("--out", type=Path, help="write the certificates to this folder")
    args = parser.parse_args()
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
    kinds = ("simple", "exceptional", "bimodal")
    named = [name for kind in kinds for name in singularity_names(kind)]
    names, title = {each: each for each in [*named, *CUSPS]}, f"{len(named)} named, 7 T_pqr"
    sets: list[tuple[str, str, dict[str, Any]]] = [
        (title, "depth", names),
        (title, "nodes", names),
        (f"{args.starts} of 20 points, d = 3, 0..20", "depth", starts(args.starts, 3, 20, 20)),
        (f"{args.four} of 5 points, d = 4, 0..9", "depth", starts(args.four, 4, 5, 9)),
    ]
    values: list[tuple[str, str, dict[float, list[str]]]] = []
    print("| positions | objective | certified | lines | kB | write (s) | check (s) |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for title, objective, positions in filter(lambda each: each[2], sets):
        good, reached = [], defaultdict[float, list[str]](list)
        for name, position in positions.items():
            file = args.out and args.out / f"{name}-{objective}.jsonl"
            if found := certified(position, objective, file):
                good.append(found)
                reached[found[0]].append(name)
        values.append((title, objective, reached))
        _, lines, size, _, write, checked = zip(*good, strict=True)
        cells = [
            f"{median(lines):,.0f}, {max(lines):,.0f}",
            f"{median(size):.1f}, {max(size):,.0f}",
        ]
        cells += [f"{median(each):.3f}, {max(each):.1f}" for each in (write, checked)]
        print(
            f"| {title} | {objective} | {len(good)} of {len(positions)} |",
            " | ".join(cells),
            "|",
            flush=True,
        )
    print("\n| positions | objective | certified values |\n|---|---|---|")
    for title, objective, reached in values:
        shown = [
            f"{value}: {', '.join(some) if some[0] in names else len(some)}"
            for value, some in sorted(reached.items())
        ]
        print(f"| {title} | {objective} | {'; '.join(shown)} |")


if __name__ == "__main__":
    main()
