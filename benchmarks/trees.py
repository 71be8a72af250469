"""A table of resolution trees: how often are those of a host the best, family by family?

A tree counts as deepest or smallest only where the solver proved the least depth or the fewest
nodes. Families: Arnold's simple, unimodal and bimodal singularities (44); curves x^a + y^b;
threefolds, the simple singularities with a square more and Fermat's; the same with two squares.

  python -m benchmarks.trees --hosts any zeillinger --families curves
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from math import gcd

import resgym
from resgym.texts import markdown_table

HOSTS = ["any", "played", "taught", "zeillinger", "spivakovsky"]
HEADINGS = ("family", "host", "resolved", "least depth", "depth", "fewest nodes", "nodes")


def more_squares(names: Iterable[str], squares: int) -> list[list[tuple[int, ...]]]:
    """Points of singularities with so many squares of further variables added."""
    found = []
    for name in names:
        rows = [tuple(row) + (0,) * squares for row in resgym.singularity(name)]
        width = 3 + squares
        found.append(
            rows + [tuple(2 * (k == axis) for k in range(width)) for axis in range(3, width)]
        )
    return found


def fermat(dimension: int) -> list[list[tuple[int, ...]]]:
    """Points of x^n + y^n + ..., n = 2 to 6."""
    axes = range(dimension)
    return [[tuple(n * (k == axis) for k in axes) for axis in axes] for n in range(2, 7)]


def families() -> dict[str, list[Sequence[Sequence[int]]]]:
    simple = resgym.singularity_names()
    named = {
        kind: [resgym.singularity(name) for name in resgym.singularity_names(kind)]
        for kind in ("simple", "exceptional", "bimodal")
    }
    curves = [[(a, 0), (0, b)] for b in range(3, 14) for a in range(2, b) if gcd(a, b) == 1]
    return named | {
        "curves": curves,
        "threefolds": more_squares(simple, 1) + fermat(4),
        "fourfolds": more_squares(simple, 2) + fermat(5),
    }


def optima(points: Sequence[Sequence[int]], seconds: float) -> tuple[int | None, int | None]:
    """Least depth and fewest nodes, None where the solver proved nothing in time."""
    depth, nodes = (resgym.solve(points, goal, time_limit=seconds) for goal in ("depth", "nodes"))
    return depth.value if depth.proved else None, nodes.value if nodes.proved else None


def rows(hosts: Sequence[str], seconds: float, names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for family, members in families().items():
        if family not in names:
            continue
        best = [optima(points, seconds) for points in members]
        for host in hosts:
            trees = [
                resgym.resolution_tree(points, host, max_depth=200, max_nodes=20_000)
                for points in members
            ]
            whole = [
                (tree, least) for tree, least in zip(trees, best, strict=True) if tree.complete
            ]
            sizes = [(tree.depth, tree.num_nodes) for tree, _ in whole]
            cells = [f"{len(whole)} of {len(trees)}"]
            for kind in (0, 1):
                proved = sum(least[kind] is not None for least in best)
                hits = sum(
                    own[kind] == least[kind] for own, (_, least) in zip(sizes, whole, strict=True)
                )
                cells.append(f"{hits} of {proved}")
                cells.append(f"{statistics.mean(own[kind] for own in sizes):.2f}" if sizes else "-")
            print(family, host, *cells, file=sys.stderr, flush=True)
            yield family, host, *cells


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.trees",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--hosts", nargs="+", default=HOSTS, help="names or paths (default: %(default)s)")
    add(
        "--families", nargs="+", default=[*families()], choices=[*families()], help="all by default"
    )
    add("--seconds", type=float, default=10.0, help="for each proof (default %(default)s)")
    args = parser.parse_args(arguments)
    print(markdown_table([HEADINGS, *rows(args.hosts, args.seconds, args.families)]))


if __name__ == "__main__":
    main()
