"""How safe are hosts, and how quick with weak agents? Exact worst cases beside rho.

Prints a table and draws it, with the mean exact worst case on one axis and rho on the other:

  python -m sb3_ext.studies.safety --plot docs/images/safety.svg --json docs/safety.json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import resgym
from resgym.cli import OneLineParser
from resgym.files import output_file, write_file
from resgym.measure.plots import COLOURS, MARKERS, plain_axes, plot_file, save_figure
from resgym.players import Player
from resgym.players.trust import add_trust, trusting
from resgym.tables import markdown_table
from sb3_ext.cluster.pieces import Spread, spreading
from sb3_ext.runs.command import command
from sb3_ext.runs.command_line import FAILED, add_options
from sb3_ext.studies.attack.exact import exact_worst_case
from sb3_ext.studies.attack.frozen import FrozenPlayer
from sb3_ext.studies.attack.result import ends
from sb3_ext.studies.attack.settings import read_budget
from sb3_ext.studies.teach.measures import AGENTS

HOSTS = ("safe", "safe(slack=1)", "safe(slack=2)", "safe(slack=4)", "optimal", "taught", "robust")
HEADINGS = ("host", "worst case, moves", "worst case, rho", *(f"rho, {name}" for name in AGENTS))


def measure(
    host: Any, starts: int, games: int, max_positions: int = 20_000, spread: Spread = map
) -> dict[str, Any]:
    """The exact worst case of a host from so many starts of 20 points, and rho over other games.

    Returns:
        ``worst_moves`` and ``worst_rho``, each the lowest and the highest that it can be: searches
        of more than ``max_positions`` are given up, games are cut after 200 moves; ``given_up``,
        their number; and ``rho`` by weak agent. ``spread`` as in `exact_worst_case`.
    """
    section = f"exact={{starts: {starts}, max_positions: {max_positions}}}"
    budget = read_budget("points20", [section])
    frozen = FrozenPlayer.of(host, budget.game.spec(), "host")
    exact = exact_worst_case(frozen, budget, spread=spread)
    rhos = spread(partial(_rho, frozen.player, games), AGENTS)
    return {
        "worst_moves": [exact.highest.mean_length, exact.lowest.mean_length],
        "worst_rho": [exact.lowest.rho, exact.highest.rho],
        "given_up": exact.given_up,
        "rho": dict(zip(AGENTS, rhos, strict=True)),
    }


def _rho(host: Player, games: int, agent: str) -> float:
    return resgym.rho(host, agent, games=games).rho


def table(found: Mapping[str, Mapping[str, Any]]) -> str:
    """What was measured of some hosts, as Markdown."""
    rows = [
        [host, ends(*each["worst_moves"], digits=2), ends(*each["worst_rho"])]
        + [f"{value:.3f}" for value in each["rho"].values()]
        for host, each in found.items()
    ]
    return markdown_table(HEADINGS, rows)


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m sb3_ext.studies.safety", description=(__doc__ or "").splitlines()[0]
    )
    add = parser.add_argument
    add("--hosts", nargs="+", default=HOSTS, metavar="HOST", help="(default: %(default)s)")
    add("--starts", type=int, default=100, help="of the worst cases (default %(default)s)")
    add("--games", type=int, default=1000, help="of each rho (default %(default)s)")
    add("--plot", type=Path, metavar="FILE", help="draw it: .png, .svg or .pdf")
    add("--json", type=Path, metavar="FILE", help="hosts in it are not measured again")
    add_options(parser, "--actors", "--timeout-s")
    add_trust(parser)
    return parser


def picture(found: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Draws rho with each agent over the mean worst case, its lower bound where it is open."""
    figure, axes = plain_axes(8.0, 4.8)
    best = min(each["worst_moves"][0] for each in found.values())
    above = {host: each["worst_moves"][0] - best for host, each in found.items()}
    for agent, colour, marker in zip(AGENTS, COLOURS, MARKERS, strict=False):
        for style, label, safe in (("-", agent, True), ("", None, False)):
            hosts = [host for host in found if host.startswith("safe") is safe]
            x = [above[host] for host in hosts]
            y = [found[host]["rho"][agent] for host in hosts]
            axes.plot(x, y, linestyle=style, color=colour, marker=marker, label=label)
    for host, each in found.items():
        sign = 1 if host.startswith("safe") else -1  # the names of the others stand below
        place = (above[host], sign * max(sign * rho for rho in each["rho"].values()))
        name = f"{host}, at least" if each["given_up"] else host
        turned: Any = {"rotation": 50 * sign, "va": "bottom" if sign > 0 else "top"}
        axes.annotate(name, place, (0, 8 * sign), textcoords="offset points", fontsize=8, **turned)
    axes.set_xscale("symlog", linthresh=1.0)
    safer = f"mean exact worst case, in moves above the least ({best:.2f}); safer: left"
    axes.set(xlabel=safer, ylabel="rho; quicker: up", ylim=(0.0, 1.35 * axes.get_ylim()[1]))
    axes.legend(title="agent", loc="upper right", fontsize="small")
    save_figure(figure, path)


@command("safety", failed=FAILED)
def main(arguments: Sequence[str]) -> int:
    """Measures, prints and draws; returns the exit code, see `command`."""
    args = _parser().parse_args(arguments)
    plot = plot_file(args.plot, "plot")
    found: dict[str, Any] = {}
    if args.json is not None and output_file(args.json, (".json",), "json").exists():
        found = json.loads(args.json.read_text(encoding="utf-8"))
    with trusting(args.trust), spreading(args.actors, timeout_s=args.timeout_s) as spread:
        for host in [each for each in args.hosts if each not in found]:
            print(f"measuring {host}", file=sys.stderr)
            found[host] = measure(host, args.starts, args.games, spread=spread)
            if args.json is not None:
                write_file(args.json, json.dumps(found, indent=1) + "\n")
    found = {host: found[host] for host in args.hosts}
    print(table(found))
    if plot is not None:
        picture(found, plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
