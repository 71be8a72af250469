"""A table of the sixteen singularities A1-A8, D4-D8, E6-E8: how good are the resolutions?

Depth and nodes of the proven optima, of Zeillinger's tree and of the tree of a trained or saved
host. Nodes count the root; depth counts moves.

  python -m benchmarks.ade_table --save runs/ade/host
  python -m benchmarks.ade_table --model taught --names E6 E7 E8
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import resgym
from resgym.texts import markdown_table

HEADINGS = ("singularity", "least depth", "fewest nodes", "Zeillinger: depth", "nodes")
HEADINGS += ("trained: depth", "nodes")
CUT = {"depth": "depth", "size": "nodes", "overflow": "2^59"}


def optimum(points: Any, objective: str) -> str:
    solution = resgym.solve(points, objective)
    if not solution.proved:
        raise RuntimeError(str(solution))
    return str(solution.value)


def size(points: Any, host: Any, max_depth: int, max_nodes: int) -> tuple[str, str]:
    """Depth and nodes of a host's tree; a lower bound where it was cut."""
    tree = resgym.resolution_tree(points, host, max_depth=max_depth, max_nodes=max_nodes)
    if tree.complete:
        return str(tree.depth), str(tree.num_nodes)
    ends = {CUT[chart.ending] for chart in tree if chart.ending in CUT}
    return f"not finished ({', '.join(sorted(ends))})", f"> {tree.num_nodes}"


def table(
    host: Any, names: Sequence[str], max_depth: int = 40, max_nodes: int = 100_000
) -> list[tuple[str, ...]]:
    rows = []
    for name in names:
        points = resgym.singularity(name)
        best = (optimum(points, objective) for objective in ("depth", "nodes"))
        zeillinger = size(points, "zeillinger", 100, 100_000)
        rows.append((name, *best, *zeillinger, *size(points, host, max_depth, max_nodes)))
    return rows


def train(updates: int, seed: int, save: Path) -> Path:
    from sb3_ext.checkpoints.models import save_player
    from sb3_ext.train.config_files import transitions_for
    from sb3_ext.train.quickstart import make_model

    print(f"training a host against random: {updates} updates", file=sys.stderr)
    model = make_model(
        updates, seed, n_steps=1, env_kwargs={"opponent": "random", "reward": "step"}
    )
    model.learn(transitions_for(model, updates), progress_bar=sys.stderr.isatty())
    save_player(save, model, {})
    return save


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ade_table",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--model", help="a host by name or path; without it one is trained")
    add("--updates", type=int, default=5_000, help="of the training (default %(default)s)")
    add("--seed", type=int, default=0, help="of the training (default 0)")
    save = "where the trained host goes (default %(default)s)"
    add("--save", type=Path, default=Path("runs/ade/host"), help=save)
    names = resgym.singularity_names()
    add("--names", nargs="+", default=names, help="singularities (default: the sixteen)")
    add("--max-depth", type=int, default=40, help="cuts the host's branches (default 40)")
    add("--max-nodes", type=int, default=100_000, help="cuts its tree (default 100000)")
    args = parser.parse_args(arguments)
    host = args.model or str(train(args.updates, args.seed, args.save))
    rows = table(host, args.names, args.max_depth, args.max_nodes)
    print(markdown_table([HEADINGS, *rows]))


if __name__ == "__main__":
    main()
