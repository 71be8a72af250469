"""The command line: ``python -m sb3_ext.attack run|exact|table``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from resgym.cli import OneLineParser
from resgym.trust import add_trust, command_line
from sb3_ext.callbacks.stop_conditions import Ended, read_stop_rules
from sb3_ext.cluster.pieces import spreading
from sb3_ext.config.sections import ConfigError
from sb3_ext.runs.command import command
from sb3_ext.runs.command_line import (
    FAILED,
    add_options,
    reporter,
    starts_setting,
    torch_threads,
)
from sb3_ext.studies.attack.exact import exact_worst_case
from sb3_ext.studies.attack.exploitation import exploit
from sb3_ext.studies.attack.frozen import FrozenPlayer
from sb3_ext.studies.attack.settings import AttackBudget, read_budget, shipped_budgets
from sb3_ext.studies.attack.table import AGENTS, HOSTS, Results, fill, markdown

_ABOUT = """\
How weak is a player at its weakest? An attack freezes the player and trains opponents against it
from several seeds, with a budget that is the same for every player. The worst rho over them (games
finished per move; for a host the lowest, for an agent the highest) says what the player keeps.
Scripted opponents count too, so a training that fails makes no player look strong. A figure found
in this way is a bound: somebody may do worse to the player, nobody was found who does.
"""

_EXAMPLES = """\
examples:
  python -m sb3_ext.attack run zeillinger                     trained agents against a host
  python -m sb3_ext.attack run choose_first                   trained hosts against an agent
  python -m sb3_ext.attack run random --role host             a name that both seats know
  python -m sb3_ext.attack run runs/ade/host --budget points20 --out runs/attack/mine
  python -m sb3_ext.attack run zeillinger --set responder.updates=500 --seeds 0
  python -m sb3_ext.attack exact zeillinger                   the truth, by search
  python -m sb3_ext.attack table --model taught=runs/taught   a table of players
  python -m sb3_ext.attack exact taught --role host --actors 8

A run goes on where it was stopped: seeds that are finished in its folder are not trained again.
"""


@command("attack", failed=FAILED, interrupted="stopped; what is finished is kept, repeat to go on")
def main(arguments: Sequence[str]) -> int:
    """Attacks as the command line says; returns the exit code, see `command`."""
    args = _parser().parse_args(arguments)
    if args.actors and args.threads != 1:
        raise ConfigError(f"--threads: actors have one thread each, got {args.threads}")
    with torch_threads(args.threads), command_line(args.trust, getattr(args, "budget", None)):
        args.run(args)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m sb3_ext.attack",
        description=_ABOUT,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    run = commands.add_parser("run", help="attack one player")
    exact = commands.add_parser("exact", help="the worst case of one player by search")
    known = f"a YAML file, or one of {', '.join(shipped_budgets())} (default points5)"
    for one in (run, exact):
        add_options(one, "--starts")
        one.add_argument("player", help="a name, or the path of a saved model")
        one.add_argument("--role", choices=("host", "agent"), help="its seat, if it is not clear")
        one.add_argument("--name", help="for tables")
        one.add_argument("--budget", default="points5", help=known)
    run.add_argument("--seeds", type=int, nargs="+", help="instead of those of the budget")
    folder = "folder (default runs/attack/<budget>/<role>-<player>)"
    run.add_argument("--out", type=Path, help=folder)
    add_options(run, "--stop")
    run.add_argument("--no-exact", action="store_true", help="no search for the truth")
    table = commands.add_parser("table", help="attack many players and compare them")
    add = table.add_argument
    add("--hosts", nargs="*", metavar="NAME", default=list(HOSTS))
    add("--agents", nargs="*", metavar="NAME", default=list(AGENTS))
    model = "a saved model too; may be repeated"
    add("--model", action="append", default=[], metavar="[NAME=]PATH", help=model)
    budgets = ["points5", "points20"]
    add("--budgets", nargs="+", metavar="NAME", default=budgets, help="settings")
    known = "what was found so far; players in it are not attacked again (default %(default)s)"
    add("--results", type=Path, default=Path("runs/attack/results.json"), help=known)
    add("--out", type=Path, default=Path("runs/attack"), help="folder of the attacks")
    for one, function in ((run, _run), (exact, _exact), (table, _table)):
        add_trust(one)
        add_options(one, "--set", "--json", "--no-progress", "--threads", "--actors", "--timeout-s")
        one.set_defaults(run=function)
    return parser


def _one_player(args: argparse.Namespace) -> tuple[FrozenPlayer, AttackBudget]:
    settings = [*args.settings, *starts_setting(args.starts, "game.starts")]
    if getattr(args, "seeds", None):
        settings.append(f"responder.seeds={args.seeds}")
    budget = read_budget(args.budget, settings)
    return FrozenPlayer.of(args.player, budget.game.spec(), args.role, args.name), budget


def _run(args: argparse.Namespace) -> None:
    known = ("max_updates", "max_timesteps", "max_seconds", "until")
    rules = read_stop_rules(args.stop, known, ("rho/score", "seeds"))
    frozen, budget = _one_player(args)
    out = args.out or Path("runs/attack") / budget.name / f"{frozen.role}-{frozen.name}"
    exact = False if args.no_exact else None
    # Without actors a rule is looked at by the training itself.
    check = {"check": rules.check} if rules is not None and args.actors else {}
    try:
        with spreading(args.actors, timeout_s=args.timeout_s, **check) as spread:
            result = exploit(
                frozen,
                budget,
                exact=exact,
                out=out,
                progress=not args.no_progress,
                spread=spread,
                rules=rules,
            )
        print(result.to_json(indent=2) if args.json else result.report())
    except Ended:  # before there was anything to report
        pass
    if rules is not None and rules.reason is not None:
        line = f"attack ends: {rules.reason}; the same command goes on from what is in {out}"
        print(line, file=sys.stderr if args.json else sys.stdout)


def _exact(args: argparse.Namespace) -> None:
    frozen, budget = _one_player(args)
    with spreading(args.actors, timeout_s=args.timeout_s) as spread:
        say = reporter(not args.no_progress)
        found = exact_worst_case(frozen, budget, progress=say, spread=spread)
    print(json.dumps(found.to_dict(), indent=2) if args.json else f"{frozen.name}: {found}")


def _table(args: argparse.Namespace) -> None:
    budgets = [read_budget(name, args.settings) for name in args.budgets]
    players: list[tuple[Any, Any, str | None]] = [(name, "host", None) for name in args.hosts]
    players += [(name, "agent", None) for name in args.agents]
    for text in args.model:
        name, separator, path = text.partition("=")
        players.append((path, None, name) if separator else (text, None, None))
    results = Results(args.results)
    with spreading(args.actors, timeout_s=args.timeout_s) as spread:
        fill(results, players, budgets, args.out, reporter(not args.no_progress), spread)
    print(json.dumps(results.rows, indent=2) if args.json else markdown(results))
