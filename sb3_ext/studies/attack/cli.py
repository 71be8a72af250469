"""The command line: ``python -m sb3_ext.attack run|exact|table``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import torch

from resgym.players.trust import add_trust, trusting
from sb3_ext.checkpoints.checkpoint import CheckpointError
from sb3_ext.config.sections import ConfigError
from sb3_ext.studies.attack.exact import exact_worst_case
from sb3_ext.studies.attack.exploitation import exploit, report_to_stderr
from sb3_ext.studies.attack.frozen import FrozenPlayer
from sb3_ext.studies.attack.settings import AttackBudget, read_budget, shipped_budgets
from sb3_ext.studies.attack.table import AGENTS, HOSTS, Results, fill, markdown, write_page

__all__ = ["main"]

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
  python -m sb3_ext.attack run runs/ade/host.zip --budget points20 --out runs/attack/mine
  python -m sb3_ext.attack run zeillinger --set responder.updates=500 --seeds 0
  python -m sb3_ext.attack exact zeillinger                   the truth, by search
  python -m sb3_ext.attack table --model taught=runs/taught   a table of players

A run goes on where it was stopped: seeds that are finished in its folder are not trained again.
"""


class _Parser(argparse.ArgumentParser):
    """As argparse, with errors in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Attacks as the command line says; returns the exit code.

    0: done. 1: a training became NaN, or results could not be written. 2: the command line, the
    budget, the player or a folder is not valid; one line says why. 130: stopped by Ctrl-C, what is
    finished is kept.
    """
    args = _parser().parse_args(arguments)
    before = torch.get_num_threads()
    try:
        if args.threads < 1:
            raise ConfigError(f"threads must be at least 1, got {args.threads}")
        torch.set_num_threads(args.threads)
        with trusting(args.trust):
            code: int = args.run(args)
        return code
    except (CheckpointError, ConfigError) as error:
        print(f"attack: {error}", file=sys.stderr)
        return 2
    except (FloatingPointError, OSError) as error:
        print(f"attack: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("attack: stopped; what is finished is kept, repeat to go on", file=sys.stderr)
        return 130
    finally:
        torch.set_num_threads(before)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m sb3_ext.attack",
        description=_ABOUT,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)

    run = commands.add_parser("run", help="attack one player")
    _add_player(run)
    _add_budget(run, "points5")
    run.add_argument("--seeds", type=int, nargs="+", help="instead of those of the budget")
    run.add_argument(
        "--out", type=Path, help="folder (default runs/attack/<budget>/<role>-<player>)"
    )
    run.add_argument("--no-exact", action="store_true", help="no search for the truth")
    _add_output(run)
    run.set_defaults(run=_run)

    exact = commands.add_parser("exact", help="the worst case of one player by search")
    _add_player(exact)
    _add_budget(exact, "points5")
    _add_output(exact)
    exact.set_defaults(run=_exact)

    table = commands.add_parser("table", help="attack many players and compare them")
    table.add_argument("--hosts", nargs="*", metavar="NAME", default=list(HOSTS))
    table.add_argument("--agents", nargs="*", metavar="NAME", default=list(AGENTS))
    table.add_argument(
        "--model",
        action="append",
        default=[],
        metavar="[NAME=]PATH",
        help="a saved model too; may be repeated",
    )
    table.add_argument(
        "--budgets", nargs="+", metavar="NAME", default=["points5", "points20"], help="settings"
    )
    table.add_argument("--set", action="append", default=[], dest="settings", metavar="a.b=1")
    table.add_argument(
        "--results",
        type=Path,
        default=Path("runs/attack/results.json"),
        help="what was found so far; players that are in it are not attacked again "
        "(default runs/attack/results.json)",
    )
    table.add_argument(
        "--out", type=Path, default=Path("runs/attack"), help="folder of the attacks"
    )
    table.add_argument(
        "--page", type=Path, help="a Markdown file whose tables are replaced by these"
    )
    _add_output(table)
    table.set_defaults(run=_table)
    return parser


def _add_player(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("player", help="a name, or the path of a saved model")
    parser.add_argument("--role", choices=("host", "agent"), help="its seat, if that is not clear")
    parser.add_argument("--name", help="for tables")


def _add_budget(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--budget",
        default=default,
        help=f"a YAML file, or one of {', '.join(shipped_budgets())} (default {default})",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="settings",
        metavar="a.b=1",
        help="another value for a key of the budget; may be repeated",
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    add_trust(parser)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--no-progress", action="store_true", help="no lines of progress on stderr")
    parser.add_argument(
        "--threads", type=int, default=1, help="threads of torch (default 1, best for small nets)"
    )


def _budget(args: argparse.Namespace) -> AttackBudget:
    settings = list(args.settings)
    if getattr(args, "seeds", None):
        settings.append(f"responder.seeds={args.seeds}")
    return read_budget(args.budget, settings)


def _run(args: argparse.Namespace) -> int:
    budget = _budget(args)
    out = args.out
    if out is None:
        frozen = FrozenPlayer.of(args.player, budget.game.spec(), args.role, args.name)
        out = Path("runs/attack") / budget.name / f"{frozen.role}-{frozen.name}"
    result = exploit(
        args.player,
        budget,
        role=args.role,
        name=args.name,
        exact=False if args.no_exact else None,
        out=out,
        progress=not args.no_progress,
    )
    print(result.to_json(indent=2) if args.json else result.report())
    return 0


def _exact(args: argparse.Namespace) -> int:
    budget = _budget(args)
    frozen = FrozenPlayer.of(args.player, budget.game.spec(), args.role, args.name)

    def show(done: int, starts: int) -> None:
        if not args.no_progress and done % max(1, starts // 10) == 0:
            report_to_stderr(f"{frozen.name}: {done} of {starts} starts")

    found = exact_worst_case(frozen, budget, progress=show)
    print(json.dumps(found.to_dict(), indent=2) if args.json else f"{frozen.name}: {found}")
    return 0


def _models(given: Sequence[str]) -> list[tuple[str | None, str]]:
    found: list[tuple[str | None, str]] = []
    for text in given:
        name, separator, path = text.partition("=")
        found.append((name, path) if separator else (None, text))
    return found


def _table(args: argparse.Namespace) -> int:
    budgets = [read_budget(name, args.settings) for name in args.budgets]
    players: list[tuple[Any, Any, str | None]] = [(name, "host", None) for name in args.hosts]
    players += [(name, "agent", None) for name in args.agents]
    players += [(path, None, name) for name, path in _models(args.model)]
    results = Results(args.results)
    fill(results, players, budgets, args.out, progress=not args.no_progress)
    if args.page is not None:
        write_page(args.page, results)
    print(json.dumps(results.rows, indent=2) if args.json else markdown(results))
    return 0
