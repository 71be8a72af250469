"""Certify many values, and print a table: ``python -m benchmarks.certificates``.

Every certificate is read and checked again. Times are CPU seconds of this process.
"""

from __future__ import annotations

import argparse
import time
from itertools import pairwise
from statistics import median
from typing import Any

import resgym
from resgym import functional as game
from resgym.certificate_check import check
from resgym.polynomials.singularities import singularity_names

CUSPS = ["T3,3,3", "T3,3,4", "T3,4,5", "T4,4,4", "T2,3,7", "T2,4,5", "T2,5,6"]


def starts(number: int, dimension: int, points: int, top: int) -> list[list[list[int]]]:
    spec = resgym.GameSpec(dimension=dimension, max_num_points=points, max_value=top)
    state = game.starts(spec, number, seed=0)
    rows = zip(state.points.tolist(), state.count.tolist(), strict=True)
    return [position[:count] for position, count in rows]


def certified(position: Any, objective: Any) -> tuple[float, ...] | None:
    """Return lines, kB, and seconds to solve, write and check; None if the value is not proved."""
    times = [time.process_time()]
    solution = resgym.solve(position, objective)
    times.append(time.process_time())
    text = solution.certificate()
    times.append(time.process_time())
    says = check(text.splitlines()).says
    times.append(time.process_time())
    if says != (objective, solution.value, solution.value):
        return None
    seconds = [later - before for before, later in pairwise(times)]
    return len(text.splitlines()), len(text) / 1000, *seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=200, help="starts of 20 points, three axes")
    parser.add_argument("--four", type=int, default=50, help="starts of 5 points, four axes")
    args = parser.parse_args()
    kinds = ("simple", "exceptional", "bimodal")
    named = [name for kind in kinds for name in singularity_names(kind)]
    names, title = [*named, *CUSPS], f"{len(named)} named and {len(CUSPS)} T_pqr"
    sets: list[tuple[str, str, list[Any]]] = [
        (title, "depth", names),
        (title, "nodes", names),
        (f"{args.starts} of 20 points, d = 3, 0..20", "depth", starts(args.starts, 3, 20, 20)),
        (f"{args.four} of 5 points, d = 4, 0..9", "depth", starts(args.four, 4, 5, 9)),
    ]
    print("| positions | objective | certified | lines | kB | write (s) | check (s) |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for title, objective, positions in sets:
        found = [certified(position, objective) for position in positions]
        good = [each for each in found if each is not None]
        lines, size, _, write, checked = zip(*good, strict=True)
        cells = [
            f"{median(lines):,.0f}, {max(lines):,.0f}",
            f"{median(size):.1f}, {max(size):,.0f}",
        ]
        cells += [f"{median(each):.3f}, {max(each):.1f}" for each in (write, checked)]
        print(
            f"| {title} | {objective} | {len(good)} of {len(found)} |",
            " | ".join(cells),
            "|",
            flush=True,
        )


if __name__ == "__main__":
    main()
