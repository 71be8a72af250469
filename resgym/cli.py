"""The command line ``resgym``: its commands, and those of other installed packages."""

from __future__ import annotations

import argparse
import errno
import json
import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points, version
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from resgym.app.serve import add_serve
from resgym.command import OneLineParser, progress_lines, standard_streams, told
from resgym.files import output_file, write_file
from resgym.texts import one_line
from resgym.trust import add_trust, command_line, command_words, packaged


def _options(args: argparse.Namespace, function: Callable[..., Any]) -> dict[str, Any]:
    """Return the arguments of a command that a function takes by name."""
    names = signature(function).parameters
    return {name: value for name, value in vars(args).items() if name in names}


def _print(result: Any, as_json: bool, text: object = None) -> None:
    print(json.dumps(result.to_dict(), indent=2) if as_json else text or result)


def _measure(args: argparse.Namespace, function: Callable[..., Any]) -> None:
    _print(function(**_options(args, function)), args.json)


def _cross_play(args: argparse.Namespace, rho: Callable[..., Any]) -> None:
    from resgym.measure.rho import cross_play
    from resgym.pictures.plots import plot_rho_table, require_matplotlib

    if args.plot:
        require_matplotlib("--plot")
    table = cross_play(args.hosts, args.agents, **_options(args, rho))
    if args.plot:
        plot_rho_table(table, args.plot)
        print(f"written to {args.plot}", file=sys.stderr)
    _print(table, args.json)


def _check(args: argparse.Namespace, check_modes: Callable[..., Any]) -> None:
    found = check_modes(**_options(args, check_modes))
    failures = {mode: failure for mode, failure in found.items() if failure}
    if args.json:
        print(json.dumps({"id": args.id, "ok": not failures, "failures": failures}, indent=2))
    else:
        print(*(f"{args.id} {mode}: {found[mode] or 'ok'}" for mode in found), sep="\n")
    if failures:
        raise SystemExit(1)


def _parse_start(args: argparse.Namespace) -> Any:
    """Return the position that ``start`` describes, and print notices about it to stderr."""
    from resgym.polynomials.parse import CoefficientWarning, read

    points = read(args.start)
    for notice in points.notices:
        if not (vars(args).get("invariants") and notice is CoefficientWarning):
            print(f"resgym {args.command}: {notice.__doc__}", file=sys.stderr)
    return points


def _show(args: argparse.Namespace, result: Any, tree: Any, heading: str) -> None:
    """Write a tree to ``--out`` if given, and print a result; else print the outline too."""
    tree = tree and tree.compare(*args.compare)
    if args.out and tree:
        note = result._repr_html_() if result else ""
        if proof := vars(args).get("certificate"):
            note += f'<a href="{quote(os.path.relpath(proof, args.out.parent))}">certificate</a>'
        write_file(args.out, tree.to_form(args.out.suffix[1:].lower(), note))
        print(f"{heading}\nwritten to {args.out}", file=sys.stderr if args.json else sys.stdout)
    if args.json or not args.out or not tree:
        text = f"{heading if result else ''}\n{tree.to_text() if tree else _NO_TREE}".strip()
        _print(result or tree, args.json, text)
    if args.out and not tree:
        raise ValueError(f"out: {_NO_TREE}, got {args.out}")


def _tree(args: argparse.Namespace, grow: Callable[..., Any]) -> None:
    from resgym.pictures.trees import totals_text

    tree = grow(_parse_start(args), **_options(args, grow))
    found = tree.invariants() if args.invariants else None
    _show(args, found, tree, f"{found}\n" if found else totals_text(tree))


def _solve(args: argparse.Namespace, solve: Callable[..., Any]) -> None:
    from resgym.solver.search import Progress
    from resgym.solver.solution import NO_CERTIFICATE, Solution

    others = args.host, args.agent, args.max_depth, args.stop, args.rule, args.centres
    if args.certificate and others != (None, None, None, None, "basic", "all"):
        raise ValueError(NO_CERTIFICATE)
    show, latest = progress_lines(), Progress(0, 0, 0.0)

    def note(now: Progress) -> None:
        nonlocal latest
        latest = now
        show("at least {}, {} positions, {:.0f} s".format(*now))

    try:
        solution = solve(_parse_start(args), **{**_options(args, solve), "progress": note})
    except KeyboardInterrupt:
        bound, seen, seconds = latest
        solution = Solution(None, bound, None, False, args.objective, seconds, seen, "interrupt")
        _print(solution, args.json)
        raise
    if args.certificate:
        write_file(args.certificate, solution.certificate())
        print(f"certificate written to {args.certificate}", file=sys.stderr)
    _show(args, solution, solution.tree, str(solution))


def _certificate(args: argparse.Namespace, read: Callable[..., Any]) -> None:
    solution = read(args.certificate)
    _show(args, solution, solution.tree, f"{args.certificate} is valid: {solution}")


def _play(args: argparse.Namespace, play: Callable[..., Any]) -> None:
    from resgym.app.play import random_position
    from resgym.envs.frames import PICTURE_DIMENSIONS
    from resgym.pictures.shapes import require_matplotlib
    from resgym.texts import variable_pretty

    if args.start is None:
        points = random_position(**_options(args, random_position))
    elif args.starts is None:
        points = _parse_start(args)
    else:
        raise ValueError(f"starts must not be given beside start, got {args.starts}")
    picture = args.out and args.out.suffix.lower() == ".gif"
    if picture:
        require_matplotlib("--out with .gif")
        if points.dimension not in PICTURE_DIMENSIONS:
            raise ValueError(f"out must end in .json with {points.dimension} axes, got {args.out}")
    # With --json the conversation must not mix with the result.
    record = play(points, target=sys.stderr if args.json else sys.stdout, **_options(args, play))
    text = json.dumps(
        {"variables": points.variables, "seat": args.seat, **record.to_dict()}, indent=2
    )
    if picture:
        record.to_gif(args.out, names=[*map(variable_pretty, points.variables)])
    elif args.out:
        write_file(args.out, text + "\n")
    if args.out:
        print(f"written to {args.out}", file=sys.stderr)
    if args.json:
        print(text)


def _file(*endings: str) -> dict[str, Any]:
    """An option that names a file to write."""
    file = told(lambda name: output_file(name, endings, "the file"))
    return {"type": file, "metavar": "FILE", "help": f"write to this file: {', '.join(endings)}"}


class _Command(NamedTuple):
    """A command, and the function whose arguments its options are, with their types and defaults.

    Options without dashes come first; ``more`` is what argparse is told beside that.
    """

    help: str
    run: Callable[[argparse.Namespace, Any], None]
    function: str
    options: str = ""
    more: dict[str, dict[str, Any]] = {}  # noqa: RUF012


_RANDOM = " --dimension --max-num-points --max-value --max-moves --starts"
_PAIRS = f"--games --seed --device --optimum{_RANDOM} --rule --unit"
_TREE = " --rule --unit --weights --stop --centres --compare --out"
_MANY_VALUES = {"nargs": "+"}
_NO_TREE = "no tree of at most 100000 nodes is known"
_EXPORTS = (
    "write .html .svg .tex .dot .json .txt .sing (Singular) .m2 .sage .jl (OSCAR) .pl (polymake)"
)
_FILES = {"--compare": _MANY_VALUES | {"default": ()}}
_FILES["--out"] = _file(*(end for end in _EXPORTS.split() if "." in end)) | {"help": _EXPORTS}
_COMMANDS = {
    "rho": _Command(
        "measure games finished per move", _measure, "measure.rho:rho", f"host agent {_PAIRS}"
    ),
    "cross-play": _Command(
        "measure every host against every agent",
        _cross_play,
        "measure.rho:rho",
        f"--hosts --agents --plot {_PAIRS}",
        {
            "--hosts": _MANY_VALUES | {"default": ["random", "all_coord", "zeillinger"]},
            "--agents": _MANY_VALUES | {"default": ["random", "choose_first", "choose_last"]},
            "--plot": _file(".png", ".svg", ".pdf"),
        },
    ),
    "check": _Command(
        "check an environment against its contract",
        _check,
        "testing:check_modes",
        "id --steps --seed --starts",
    ),
    "tree": _Command(
        "grow the resolution tree of a host; charts show the monomials that no other one divides",
        _tree,
        "trees.growth:resolution_tree",
        f"start --host --max-depth --max-nodes --reposition --seed --invariants{_TREE}",
        _FILES | {"--invariants": {"action": "store_true"}},
    ),
    "examine": _Command(
        "tell what is true of a polynomial, and what its trees prove",
        lambda args, examine: _print(examine(args.start), args.json),
        "geometry.examine:examine",
        "start",
    ),
    "solve": _Command(
        "prove the optimal value of a position, or the worst case of a player there",
        _solve,
        "solver.solve:solve",
        f"start --objective --max-depth --time-limit --agent --host --certificate{_TREE}",
        _FILES
        | {"--certificate": _file(".jsonl") | {"help": "write a proof to this file: .jsonl"}},
    ),
    "certificate": _Command(
        "check a proof written by solve, and show its tree",
        _certificate,
        "proofs.certificate:read_certificate",
        "certificate --compare --out",
        _FILES,
    ),
    "play": _Command(
        "play a game in the terminal, from a random start if none is given",
        _play,
        "app.play:play",
        f"start --as --opponent --seed --out{_RANDOM}",
        {
            "start": {"nargs": "?"},
            "--as": {"dest": "seat", "choices": ("host", "agent"), "default": "agent"},
            "--out": _file(".gif", ".json"),
        },
    ),
    "bench": _Command(
        "measure moves per second",
        _measure,
        "measure.bench:bench",
        "--batch-sizes --dimension --max-num-points --device --backend --repeats --seconds",
    ),
    "compile": _Command("compile the kernels before use", _measure, "measure.bench:compile_ahead"),
    "scoreboard": _Command(
        "show how far players are from proved optimal play",
        lambda args, run: run(args),
        "scoreboard:run",
        "action --task --name --track --steps --file",
        {
            "action": {"nargs": "*"},
            "--task": {"action": "append"},
            "--track": {"choices": ("play", "labels", "search", "script")},
            "--steps": {"type": int, "help": "environment steps of the training"},
            "--file": {"type": Path, "default": Path("scoreboard.json")},
        },
    ),
}

_HELP = """
start: E8, a polynomial like x^2+y^3+z^5, exponent lists or a file
certificate: a file written by solve --certificate
id: a Gymnasium id, for example resgym/HironakaHost-v0
action: add MODEL: measure a player; check FILE: measure a file's players again
host: a host: {hosts}, or a saved model's path
agent: an agent: {agents}, or a saved model's path
hosts: hosts: {hosts}, or saved models' paths
agents: agents: {agents}, or saved models' paths
as: your seat
opponent: a player's name or a model's path (default: host zeillinger, agent random)
games: games of each pairing
seed: seed of random starts and random players
device: cpu or cuda[:n]
optimum: show rho as a share of the optimum, for deterministic agents without memory
dimension: number of axes, 2 to 10
max_num_points: points of a random start
max_value: largest value of a random start
max_moves: cut games after this many moves
starts: draw starts from this file with one position a line (see docs/environments.md)
rule: rule of the game: basic, polyhedra or thom
unit: rule polyhedra: exponents are multiples of 1/UNIT
weights: rule thom: weights of the axes
max_depth: cut the tree, or stop the search, after this many moves
max_nodes: cut the tree after this many charts
stop: smooth or crossings: end where the strict transform is smooth, or crosses divisors too
centres: all, or equimultiple: along which the strict transform is as at the chart's origin
reposition: divide each chart by its common monomial factor
invariants: print the zeta function, the Milnor number, ... of the polynomial as typed
objective: minimise the longest branch, the nodes or the leaves: depth, nodes or leaves
time_limit: stop after this many seconds
compare: mark where these hosts would choose another set
steps: steps to play
batch_sizes: numbers of parallel games
backend: implementation of the moves: auto, torch, numba or triton
repeats: repeats; the median is printed
seconds: seconds per repeat
name: name in the table (default: the model's own)
task: a task (default worst-20); may be repeated
file: show the results of this file too; add writes to it
"""


def _argument(parameter: Parameter) -> dict[str, Any]:
    """What argparse is told of a function's argument."""
    kind, default = str(parameter.annotation), parameter.default
    if default is False:
        return {"action": "store_true"}
    found = {} if default is Parameter.empty else {"default": default}
    if "int" in kind or "float" in kind:
        found["type"] = int if "int" in kind else float
    return found | (_MANY_VALUES if kind.startswith("Sequence") else {})


def _add_options(parser: argparse.ArgumentParser, about: _Command) -> None:
    from resgym.game.spec import GameSpec
    from resgym.players.registry import agent_names, host_names

    function = packaged(f"resgym.{about.function}")
    names = {"hosts": ", ".join(host_names()), "agents": ", ".join(agent_names())}
    helps = dict(line.split(": ", 1) for line in _HELP.splitlines() if line)
    # A game from a random start has the sizes of a `GameSpec`.
    parameters = {**signature(GameSpec).parameters, **signature(function).parameters}
    for option in about.options.split():
        name = option.removeprefix("--").replace("-", "_")
        found = about.more.get(option) or (
            _argument(parameters[name]) if name in parameters else {}
        )
        text = helps.get(name, "").format(**names)
        if found.get("default"):
            text += " (default %(default)s)"
        parser.add_argument(option, **{"help": text, **found})
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    add_trust(parser)
    parser.set_defaults(run=about.run, function=function)


def _parser(name: str) -> argparse.ArgumentParser:
    """Return the parser of all commands; only ``name`` gets options: they need slow imports."""
    parser = OneLineParser(
        prog="resgym",
        description="Play, measure and solve Hironaka's polyhedral game; grow resolution trees.",
        epilog="Begin with: resgym play E8; resgym solve E8; resgym tree E8 --out e8.html. "
        "Notebooks show trees, solutions, positions and tables; to_latex() is for papers.",
    )
    parser.add_argument("--version", action="version", version=f"resgym {version('resgym')}")
    commands = parser.add_subparsers(title="commands", dest="command", required=True)
    for command, about in _COMMANDS.items():
        subparser = commands.add_parser(command, help=about.help, description=about.help)
        if command == name:
            _add_options(subparser, about)
    add_serve(commands)
    for entry in entry_points(group="resgym.commands"):
        commands.add_parser(entry.name, help=f"see resgym {entry.name} --help", add_help=False)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code (2 for bad input, with one line on stderr)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    with command_words(words):
        for entry in entry_points(group="resgym.commands", name=words[0] if words else ""):
            try:
                return int(entry.load()(words[1:]))
            except ImportError as error:  # it needs an extra that is not installed
                print(f"resgym {entry.name}: {one_line(error)}", file=sys.stderr)
                return 2
        with standard_streams("resgym", plain=True):
            return _main(words)


def _main(words: list[str]) -> int:
    from resgym.polynomials.parse import ParseError

    args = _parser(next(filter(_COMMANDS.get, words), "")).parse_args(words)
    args.progress = progress_lines()
    try:
        with command_line(getattr(args, "trust", False)):
            args.run(args, args.function)
    except BrokenPipeError:
        return 0  # the reader (head, less) has closed the pipe
    except (ArithmeticError, MemoryError, OSError, RecursionError, TypeError, ValueError) as error:
        # The second line of a ParseError is the input, with a caret below it.
        text = str(error) if isinstance(error, ParseError) else one_line(error)
        print(f"resgym {args.command}: {text}", file=sys.stderr)
        return 1 if getattr(error, "errno", None) in (errno.EIO, errno.ENOSPC) else 2
    except KeyboardInterrupt:
        return 130
    return 0
