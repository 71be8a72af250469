"""``python -m sb3_ext.retest RUN``: every checkpoint of a run is measured again, all alike.

What is measured, and on which starts, says a budget of ``python -m sb3_ext.attack``: rho against
its scripted players, and the exact worst case beside the optimum.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from resgym.cli import OneLineParser
from resgym.files import output_file
from resgym.game.spec import Role
from resgym.measure.plots import PLOT_ENDINGS, Curve, plot_curves, plot_file
from resgym.players.trust import add_trust, trusting
from resgym.tables import text_table
from sb3_ext.checkpoints.checkpoint import is_checkpoint, list_checkpoints
from sb3_ext.config.sections import ConfigError
from sb3_ext.runs.command import command
from sb3_ext.runs.command_line import FAILED, add_options, reporter
from sb3_ext.studies.attack.exact import exact_worst_case, scripted_rho
from sb3_ext.studies.attack.settings import AttackBudget, read_budget, shipped_budgets
from sb3_ext.studies.json_files import write_json
from sb3_ext.training.loading import load_player

_EXAMPLES = """\
examples:
  python -m sb3_ext.retest runs/duel --out runs/duel/retest.json --plot runs/duel/retest.png
  python -m sb3_ext.retest runs/duel --role host --budget points20 --set exact.starts=20
  python -m sb3_ext.retest runs/duel --set exact=null          rho alone
"""


def checkpoints_of(run: Path) -> list[Path]:
    """The numbered checkpoints of a run's folder, the oldest first, then the best versions.

    Raises:
        ConfigError: there is none.
    """
    inner = run / "checkpoints"
    numbered = list_checkpoints(inner if inner.is_dir() else run)
    best = [run / "best", *sorted((run / "best").glob("*"))]
    found = [*sorted(numbered, key=lambda path: path.name), *filter(is_checkpoint, best)]
    if not found:
        raise ConfigError(f"run: there is no checkpoint in {run}")
    return found


def measure_again(
    run: Path,
    budget: AttackBudget,
    roles: Sequence[Role] = ("host", "agent"),
    report: Callable[[str], None] = lambda line: None,
) -> list[dict[str, Any]]:
    """The figures of every checkpoint of a run and every one of these seats that it can play.

    Returns:
        An entry each, in the order of `checkpoints_of`: ``checkpoint``, ``role``, ``step`` (None
        for a best version), ``rho`` and ``win_rate`` by opponent, ``worst_length`` over the games
        against all of them, and ``exact``, None if the budget asks for no search.

    Raises:
        ConfigError: there is no checkpoint, or none that plays one of these seats.
    """
    found, refused = [], ""
    for path in checkpoints_of(run):
        for role in roles:
            try:
                player = load_player(path, role)
            except ValueError as error:
                refused = str(error)
                continue
            found.append({**_figures(player, role, budget), "checkpoint": path.name})
            _, dash, number = path.name.partition("checkpoint-")
            found[-1]["step"] = int(number.removesuffix(".old")) if dash else None
            report(f"{path.name}: {role} measured")
    if not found:
        raise ConfigError(f"run: no checkpoint of {run} can be played: {refused}")
    return found


def _figures(player: Any, role: Role, budget: AttackBudget) -> dict[str, Any]:
    measured = scripted_rho(player, role, budget)
    lengths = [each.longest if role == "host" else each.shortest for each in measured.values()]
    exact = None if budget.exact is None else exact_worst_case(player, budget)
    return {
        "role": role,
        "rho": {name: each.rho for name, each in measured.items()},
        "win_rate": {name: each.win_rate for name, each in measured.items()},
        "worst_length": (max if role == "host" else min)(lengths, default=None),
        "exact": None if exact is None else {**exact.to_dict(), "cells": exact.figures()},
    }


def table_of(entries: Sequence[dict[str, Any]]) -> str:
    """The entries of `measure_again` as text, a table for each seat."""
    tables = []
    for role in dict.fromkeys(entry["role"] for entry in entries):
        own = [entry for entry in entries if entry["role"] == role]
        names, exact = list(own[0]["rho"]), own[0]["exact"] is not None
        heading = [role, *names, "worst length"]
        heading += ["exact rho", "moves", "optimum", "optimal"] if exact else []
        rows = [heading]
        for entry in own:
            values = [f"{entry['rho'][name]:.4f}" for name in names]
            cells = entry["exact"]["cells"][:4] if exact else []
            rows.append([entry["checkpoint"], *values, str(entry["worst_length"]), *cells])
        tables.append(text_table(rows))
    return "\n\n".join(tables)


def curves_of(entries: Sequence[dict[str, Any]]) -> list[Curve]:
    """Rho over the numbers of the checkpoints: each seat against each opponent, and at worst."""
    curves = []
    for role in dict.fromkeys(entry["role"] for entry in entries):
        own = [entry for entry in entries if entry["role"] == role and entry["step"] is not None]
        places = [float(entry["step"]) for entry in own]
        for name in own[0]["rho"] if own else ():
            curves.append(Curve(f"{role}, {name}", places, [each["rho"][name] for each in own]))
        if own and own[0]["exact"] is not None:
            worst = [each["exact"]["lowest"]["rho"] for each in own]
            curves.append(Curve(f"{role}, exact", places, worst))
    return curves


@command("retest", failed=FAILED)
def main(arguments: Sequence[str]) -> int:
    """Measures as the command line says; returns the exit code, see `command`."""
    args = _parser().parse_args(arguments)
    target = None if args.plot is None else plot_file(args.plot, "plot")
    if args.out is not None:
        output_file(args.out, (".json",), "out")
    roles: tuple[Role, ...] = ("host", "agent") if args.role is None else (args.role,)
    budget = read_budget(args.budget, args.settings)
    report = reporter(not args.no_progress)
    with trusting(args.trust):
        entries = measure_again(args.run, budget, roles, report)
    if args.out is not None:
        write_json(args.out, {"budget": budget.to_dict(), "checkpoints": entries})
    print(json.dumps(entries, indent=2) if args.json else table_of(entries))
    if target is not None:
        curves = curves_of(entries)
        if not curves:
            raise ConfigError(f"plot: {args.run} has no numbered checkpoint to draw")
        plot_curves(curves, target, xlabel="number of the checkpoint")
        report(f"written to {target}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m sb3_ext.retest",
        description="Measures every checkpoint of a run again, on the same starts: a table of rho, "
        "of the worst length and of the exact worst case beside the optimum, and a curve.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("run", type=Path, metavar="RUN", help="folder of a run, of one learner or of two players")
    add("--role", choices=("host", "agent"), help="this seat alone (default: those it can play)")
    known = f"a YAML file, or one of {', '.join(shipped_budgets())} (default points5): the game, "
    known += "the opponents (scripted), games and starts (test), searches (exact) are taken of it"
    add("--budget", default="points5", help=known)
    add("--out", type=Path, metavar="FILE", help="write everything as JSON (.json)")
    add("--plot", type=Path, metavar="FILE", help=f"draw the curves: {', '.join(PLOT_ENDINGS)}")
    add_options(parser, "--set", "--json", "--no-progress")
    add_trust(parser)
    return parser
