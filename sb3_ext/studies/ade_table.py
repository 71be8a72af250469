"""A table of the sixteen singularities A1-A8, D4-D8, E6-E8: how good are the resolutions?

Depth and nodes of Zeillinger's tree, of a trained or saved host's tree and of the proven optimum.
Nodes count the root; depth counts moves.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import resgym
from resgym.cli import OneLineParser
from resgym.files import output_file, write_file
from resgym.players import Player, resolve_player
from resgym.players.trust import add_trust, trusting
from resgym.tables import markdown_table, text_table
from sb3_ext.callbacks.rho_evaluation import player_of
from sb3_ext.config.checks import check_count
from sb3_ext.runs.best import save_model
from sb3_ext.runs.command import command
from sb3_ext.runs.command_line import FAILED
from sb3_ext.training.quickstart import make_model
from sb3_ext.training.runs import transitions_for

MAX_NUM_POINTS = 20
OPPONENT = "random"
HEADINGS = (
    *("singularity", "least depth", "fewest nodes"),
    *("Zeillinger: depth", "nodes", "trained: depth", "nodes"),
)


class Size(NamedTuple):
    """Size of one host's tree; ``cut`` says why branches were cut, None if it is complete."""

    depth: int
    nodes: int
    cut: str | None = None

    def cells(self) -> tuple[str, str]:
        """The two entries of the table; a lower bound where the tree was cut."""
        if self.cut is None:
            return str(self.depth), str(self.nodes)
        return f"not finished at {self.cut}", f"> {self.nodes}"


class Row(NamedTuple):
    """One singularity: the two proven optima (of two trees, possibly) and the hosts' trees."""

    name: str
    polynomial: str
    least_depth: int
    fewest_nodes: int
    zeillinger: Size
    trained: Size

    def cells(self) -> tuple[str, ...]:
        """The entries of the table."""
        optimum = (self.name, str(self.least_depth), str(self.fewest_nodes))
        return (*optimum, *self.zeillinger.cells(), *self.trained.cells())


def table(
    host: Player | str,
    names: Sequence[str] | None = None,
    max_depth: int = 40,
    max_nodes: int = 100_000,
) -> list[Row]:
    """A row for every singularity, by default the sixteen; the limits are for the host's trees.

    Raises:
        ValueError: an unknown singularity, or a limit out of range.
        RuntimeError: an optimum could not be proved.
    """
    rows = []
    for name in resgym.singularity_names() if names is None else names:
        points = resgym.singularity(name)
        best, zeillinger = optimum(points), _size(points, "zeillinger", 100, 100_000)
        trained = _size(points, host, max_depth, max_nodes)
        row = Row(name, points.pretty(), best["depth"], best["nodes"], zeillinger, trained)
        rows.append(row)
    return rows


def optimum(points: Any) -> dict[str, int]:
    """The least ``depth`` and the fewest ``nodes``, both proved (of two trees, possibly).

    Raises:
        RuntimeError: one of them could not be proved.
    """
    found = {}
    for objective in ("depth", "nodes"):
        solution = resgym.solve(points, objective)
        if not solution.proved or not isinstance(solution.value, int):
            raise RuntimeError(str(solution))
        found[objective] = solution.value
    return found


def _size(points: Any, host: Player | str, max_depth: int, max_nodes: int) -> Size:
    tree = resgym.resolution_tree(
        points, host, max_depth=max_depth, max_nodes=max_nodes, max_num_points=MAX_NUM_POINTS
    )
    reasons = {
        "depth": f"depth {max_depth}",
        "size": f"{max_nodes} nodes",
        "overflow": "coordinate 2^59",
    }
    endings = {chart.ending for chart in tree}
    cut = " and ".join(text for ending, text in reasons.items() if ending in endings)
    return Size(tree.depth, tree.num_nodes, cut or None)


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m sb3_ext.studies.ade_table", description=(__doc__ or "").splitlines()[0]
    )
    add = parser.add_argument
    add("--model", metavar="PATH", help="a saved host; without it one is trained")
    add_trust(parser)
    updates = "gradient updates of the training (default %(default)s)"
    add("--updates", type=int, default=5_000, help=updates)
    add("--seed", type=int, default=0, help="fixes the training (default 0)")
    save = "where the trained host goes (default %(default)s)"
    add("--save", type=Path, default=Path("runs/ade/host.zip"), help=save)
    add("--names", nargs="+", metavar="NAME", help="singularities (default: the sixteen)")
    add("--max-depth", type=int, default=40, help="cuts the trained host's branches (default 40)")
    add("--max-nodes", type=int, default=100_000, help="cuts its tree (default 100000)")
    add("--json", type=Path, metavar="FILE", help="write the table to this file")
    add("--markdown", action="store_true", help="print it as Markdown")
    return parser


def _host(args: argparse.Namespace) -> Player:
    if args.model is not None:
        return resolve_player(args.model, "host", resgym.GameSpec())
    check_count("updates", args.updates)
    check_count("seed", args.seed, low=0)
    saved: Path = args.save if args.save.suffix else args.save.with_suffix(".zip")
    print(f"training a host against {OPPONENT}: {args.updates} updates", file=sys.stderr)
    model = make_model(args.updates, args.seed, OPPONENT, n_steps=1)
    model.learn(transitions_for(model, args.updates), progress_bar=sys.stderr.isatty())
    save_model(saved, model)
    print(f"saved as {saved}", file=sys.stderr)
    return player_of(model)


@command("ade_table", failed=FAILED)
def main(arguments: Sequence[str]) -> int:
    """Prints the table; returns the exit code, see `command`."""
    args = _parser().parse_args(arguments)
    for name in args.names or ():
        resgym.singularity(name)
    if args.json is not None:
        output_file(args.json, (".json",), "json")
    with trusting(args.trust):
        host = _host(args)
    rows = table(host, args.names, args.max_depth, args.max_nodes)
    cells = [row.cells() for row in rows]
    print(markdown_table(HEADINGS, cells) if args.markdown else text_table([HEADINGS, *cells]))
    if args.json is not None:
        trees = ("zeillinger", "trained")
        sizes = [{tree: getattr(row, tree)._asdict() for tree in trees} for row in rows]
        data = [{**row._asdict(), **size} for row, size in zip(rows, sizes, strict=True)]
        write_file(args.json, json.dumps(data, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
