"""The command line ``resgym``: its commands, and those of other installed packages."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Collection, Sequence
from functools import partial
from importlib.metadata import entry_points, version
from inspect import signature
from pathlib import Path
from typing import Any, NoReturn

from resgym.files import output_file, write_file
from resgym.game.spec import RULES
from resgym.scoreboard_command import add_scoreboard
from resgym.terminal.progress import progress_lines
from resgym.trust import add_import, add_trust, command_line
from resgym.web.command import add_serve

_FANS = (".jl", ".poly", ".sage")


def _path(text: str) -> Path:
    if not text:  # would be the current folder
        raise argparse.ArgumentTypeError("must be a path, got ''")
    return Path(text)


def one_line(message: object) -> str:
    """Return an error's message on one line, shortened in the middle if it is long."""
    text = " ".join(str(message).split())
    return text if len(text) <= 2000 else f"{text[:1000]} ... {text[-500:]}"


class OneLineParser(argparse.ArgumentParser):
    """An `ArgumentParser` with ``--import``, errors on one line, and no empty paths."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.register("type", Path, _path)
        add_import(self)

    def error(self, message: str) -> NoReturn:
        """End the program with exit code 2."""
        self.exit(2, f"{self.prog}: {one_line(message)} (see {self.prog} --help)\n")


def _add_game(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("game").add_argument
    add("--dimension", type=int, default=3, help="number of axes, 2 to 10 (default 3)")
    add("--max-num-points", type=int, default=20, help="points of a random start (default 20)")
    add("--max-value", type=int, default=20, help="largest value of a start (default 20)")
    add("--max-moves", type=int, default=200, help="cut games after this many (default 200)")
    _add_starts(parser)


def _add_starts(parser: argparse.ArgumentParser) -> None:
    text = "draw starts from this file with one position a line (see docs/game.md)"
    parser.add_argument("--starts", metavar="FILE", help=text)


def _add_play(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--games", type=int, default=10_000, help="games a pairing (default 10000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of starts, players (default 0)")
    parser.add_argument("--device", default="cpu", help="cpu (default) or cuda[:n]")
    text = "show rho as a share of the optimum, for deterministic agents without memory"
    parser.add_argument("--optimum", action="store_true", help=f"{text} alone")
    _add_game(parser)
    _add_rule(parser, weights=False)


def _add_out(parser: argparse.ArgumentParser) -> None:
    text = "write the tree to this file: .svg, .html, .dot, .json or .txt; or its cones as text for"
    text += " SageMath (.sage), OSCAR (.jl) or polymake (.poly)"
    _add_file(parser, "--out", sorted((".dot", ".html", ".json", ".svg", ".txt", *_FANS)), text)
    text = "of .svg: left to right, one line per chart, or animated beside a game (default: tree,"
    text += " or outline if the tree is wider than a screen)"
    parser.add_argument("--layout", choices=("tree", "outline", "growing"), help=text)


def _add_rule(parser: argparse.ArgumentParser, weights: bool = True) -> None:
    add = parser.add_argument
    add("--rule", choices=RULES, default="basic", help="rule of the game (default basic)")
    add("--unit", type=int, default=1, help="rule polyhedra: exponents are multiples of 1/UNIT")
    if weights:
        add("--weights", type=int, nargs="+", metavar="W", help="rule thom: weights of the axes")


def _options(args: argparse.Namespace, function: Callable[..., Any]) -> dict[str, Any]:
    """Return the arguments of a command that a function takes by name."""
    names = signature(function).parameters
    return {name: value for name, value in vars(args).items() if name in names}


def _print(result: Any, as_json: bool) -> None:
    print(json.dumps(result.to_dict(), indent=2) if as_json else result)


def _rho(args: argparse.Namespace) -> None:
    from resgym.measure.rho import rho

    _print(rho(**_options(args, rho), progress=progress_lines()), args.json)


def _cross_play(args: argparse.Namespace) -> None:
    from resgym.measure.rho import cross_play, rho
    from resgym.render.shapes import require_matplotlib

    if args.plot is not None:
        require_matplotlib("--plot")
    table = cross_play(args.hosts, args.agents, **_options(args, rho), progress=progress_lines())
    if args.plot is not None:
        from resgym.measure.plots import plot_rho_table

        plot_rho_table(table, args.plot)
        print(f"written to {args.plot}", file=sys.stderr)
    _print(table, args.json)


def _check(args: argparse.Namespace) -> None:
    from resgym.testing import check_modes

    found = check_modes(**_options(args, check_modes), tell=progress_lines())
    failures = {mode: failure for mode, failure in found.items() if failure}
    if args.json:
        print(json.dumps({"id": args.id, "ok": not failures, "failures": failures}, indent=2))
    else:
        for mode in found:
            print(f"{args.id} {mode}: {failures.get(mode, 'ok')}")
    if failures:
        raise SystemExit(1)


def _parse_start(args: argparse.Namespace) -> Any:
    """Return the position ``start``; print notices to stderr, one line each."""
    if getattr(args, "layout", None) and (args.out is None or args.out.suffix.lower() != ".svg"):
        raise ValueError(f"layout is for --out with .svg, got {args.layout} and out {args.out}")
    import warnings

    from resgym.polynomials.parse import parse

    with warnings.catch_warnings(record=True) as notices:
        warnings.simplefilter("always")
        points = parse(args.start)
    for notice in notices:
        print(f"resgym {args.command}: {notice.message}", file=sys.stderr)
    return points


def _add_file(
    parser: argparse.ArgumentParser, option: str, endings: Collection[str], text: str
) -> None:
    """Add an option for an output file; argparse reports a bad name in one line."""

    def file(name: str) -> Path:
        try:
            return output_file(name, endings, "the file")
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    parser.add_argument(option, type=file, metavar="FILE", help=text)


def _written(args: argparse.Namespace, content: str) -> None:
    write_file(args.out, content)
    print(f"written to {args.out}", file=sys.stderr)


def _show(args: argparse.Namespace, result: Any, tree: Any, heading: str) -> None:
    """Write a tree to ``--out`` if given; print a result and the tree's outline."""
    if args.out is not None and tree is not None:
        growing = args.layout == "growing"
        forms = {
            ".dot": tree.to_dot,
            ".html": tree.to_html,
            ".jl": lambda: tree.fan().to_oscar(),
            ".json": lambda: tree.to_json(indent=2),
            ".poly": lambda: tree.fan().to_polymake(),
            ".sage": lambda: tree.fan().to_sage(),
            ".svg": tree.to_growing_svg if growing else partial(tree.to_svg, layout=args.layout),
            ".txt": tree.to_text,
        }
        _written(args, forms[args.out.suffix.lower()]())
    if args.json:
        print(json.dumps(result.to_dict(), indent=2))
    else:
        print(heading if tree is None else f"{heading}\n{tree.to_text()}")
    if args.out is not None and tree is None:
        raise ValueError(f"out: there is no tree to write to {args.out}")


def _tree(args: argparse.Namespace) -> None:
    from resgym.trees.growth import resolution_tree

    tree = resolution_tree(_parse_start(args), **_options(args, resolution_tree))
    cut = "" if tree.complete else f", {tree.num_cut} branches cut"
    heading = f"depth {tree.depth}, {tree.num_nodes} nodes, {tree.num_leaves} leaves{cut}"
    _show(args, tree, tree, heading)


def _solve(args: argparse.Namespace) -> None:
    from resgym.solver.solution import Progress, Solution, progress_report
    from resgym.solver.solve import solve

    show = progress_report(sys.stderr.isatty())
    latest = Progress(0, 0, 0.0)

    def note(now: Progress) -> None:
        nonlocal latest
        latest = now
        show(now)

    start = _parse_start(args)
    if (args.host or args.agent) and args.out and args.out.suffix.lower() in _FANS:
        raise ValueError(f"out: a tree against one player has no fan, got {args.out}")
    try:
        solution = solve(start, progress=note, **_options(args, solve))
    except KeyboardInterrupt:
        # Bounds that were proved before the interrupt are valid.
        bound, seen, seconds = latest
        solution = Solution(None, bound, None, False, args.objective, seconds, seen, "interrupt")
        _print(solution, args.json)
        raise
    _show(args, solution, solution.tree, str(solution))


def _play(args: argparse.Namespace) -> None:
    from resgym.polynomials.monomials import variable_pretty
    from resgym.render.positions import PICTURE_DIMENSIONS
    from resgym.render.shapes import require_matplotlib
    from resgym.terminal.play import play, random_position

    drawing = {k: v for k, v in _options(args, random_position).items() if v is not None}
    sizes = [name for name in drawing if name != "seed"]
    if args.start is not None and sizes:
        raise ValueError(f"{sizes[0]} is for random starts, got the start {args.start!r}")
    points = random_position(**drawing) if args.start is None else _parse_start(args)
    form = None if args.out is None else args.out.suffix.lower()
    if form in (".gif", ".html") and points.dimension not in PICTURE_DIMENSIONS:
        more = f"got {args.out.name!r} and {points.dimension} axes"
        raise ValueError(f"out must end in .json, as pictures need 2 or 3 axes, {more}")
    if form == ".gif":
        require_matplotlib("--out with .gif")
    # With --json, stdout holds the result alone.
    record = play(points, target=sys.stderr if args.json else sys.stdout, **_options(args, play))
    result = {"variables": list(points.variables), "seat": args.seat, **record.to_dict()}
    text = json.dumps(result, indent=2)
    names = [variable_pretty(name) for name in points.variables]
    if form == ".gif":
        record.to_gif(args.out, names=names)
        print(f"written to {args.out}", file=sys.stderr)
    elif form is not None:
        _written(args, record.to_html(names=names) if form == ".html" else text + "\n")
    if args.json:
        print(text)


def _bench(args: argparse.Namespace) -> None:
    from resgym.measure.bench import bench, compile_ahead

    if args.command == "compile":
        _print(compile_ahead(), args.json)
    else:
        _print(bench(**_options(args, bench), progress=progress_lines()), args.json)


def _parser() -> argparse.ArgumentParser:
    from resgym.players.registry import agent_names, host_names

    parser = OneLineParser(
        prog="resgym",
        description="Play, measure and solve Hironaka's polyhedral game; grow resolution trees.",
        epilog="begin with: resgym play E8; resgym solve E8; resgym tree E8 --host taught",
    )
    parser.add_argument("--version", action="version", version=f"resgym {version('resgym')}")
    commands = parser.add_subparsers(title="commands", dest="command", required=True)
    hosts = f"one of {', '.join(host_names())}, or a saved model's path"
    agents = f"one of {', '.join(agent_names())}, or a saved model's path"

    command = commands.add_parser("rho", help="measure games finished per move")
    command.add_argument("host", help=hosts)
    command.add_argument("agent", help=agents)
    _add_play(command)

    command = commands.add_parser("cross-play", help="measure every host against every agent")
    add = command.add_argument
    add("--hosts", nargs="+", default=["random", "all_coord", "zeillinger"], help=hosts)
    add("--agents", nargs="+", default=["random", "choose_first", "choose_last"], help=agents)
    text = "draw the table to this file: .png, .svg or .pdf"
    _add_file(command, "--plot", (".png", ".svg", ".pdf"), text)
    _add_play(command)

    command = commands.add_parser("check", help="check an environment against its contract")
    add = command.add_argument
    add("id", help="a Gymnasium id, for example resgym/HironakaHost-v0")
    add("--steps", type=int, default=200, help="steps to play (default 200)")
    add("--seed", type=int, default=0)
    _add_starts(command)

    start = "E8, a polynomial like x^2+y^3+z^5, exponent lists or a file"
    command = commands.add_parser("tree", help="grow the resolution tree of a host")
    add = command.add_argument
    add("start", help=start)
    add("--host", default="zeillinger", help=f"{hosts} (default zeillinger)")
    add("--max-depth", type=int, default=100, help="moves before a cut (default 100)")
    add("--max-nodes", type=int, default=100_000, help="charts before a cut (default 100000)")
    add("--smooth-stop", action="store_true", help="also end branches at a monomial of degree one")
    add("--reposition", action="store_true", help="follow the strict transform")
    add("--seed", type=int, default=0, help="seed of hosts that draw random numbers (default 0)")
    _add_rule(command)
    _add_out(command)

    command = commands.add_parser("solve", help="prove the optimal value of a position")
    add = command.add_argument
    add("start", help=start)
    text = "minimise the longest branch, the nodes or the leaves (default depth)"
    add("--objective", choices=("depth", "nodes", "leaves"), default="depth", help=text)
    add("--max-depth", type=int, help="search at most this many moves deep")
    add("--time-limit", type=float, metavar="SECONDS", help="stop after this time")
    add("--agent", help="find the shortest game against this agent instead")
    add("--host", help="find the longest game against this host instead")
    _add_rule(command)
    _add_out(command)

    command = commands.add_parser("play", help="play a game in the terminal")
    add = command.add_argument
    add("start", nargs="?", help=f"{start} (default: random)")
    seats = ("host", "agent")
    add("--as", dest="seat", choices=seats, default="agent", help="your seat (default agent)")
    add("--opponent", help="player or model's path (default: host zeillinger, agent random)")
    add("--seed", type=int, default=0, help="seed of start and opponent (default 0)")
    text = "write the game to this file: .gif or .html (2 or 3 axes), or .json"
    _add_file(command, "--out", (".gif", ".html", ".json"), text)
    _add_game(command)
    # None means not given: with a start these options would have no effect.
    command.set_defaults(dimension=None, max_num_points=None, max_value=None)

    command = commands.add_parser("bench", help="measure moves per second")
    add = command.add_argument
    add("--batch-sizes", type=int, nargs="+", default=[1, 64, 1024, 4096, 16384], metavar="B")
    add("--dimension", type=int, default=3)
    add("--max-num-points", type=int, default=20)
    add("--device", default="cpu")
    add("--backend", default="auto")
    add("--repeats", type=int, default=5, help="repeats; the median is printed (default 5)")
    add("--seconds", type=float, default=1.0, help="seconds per repeat (default 1)")
    _add_starts(command)

    commands.add_parser("compile", help="compile the kernels before their first use")

    runs = (_rho, _cross_play, _check, _tree, _solve, _play, _bench, _bench)
    for command, run in zip(commands.choices.values(), runs, strict=True):
        command.add_argument("--json", action="store_true", help="print the result as JSON")
        if run not in (_check, _bench):
            add_trust(command)
        command.set_defaults(run=run)
    add_serve(commands)
    add_scoreboard(commands)
    for entry in entry_points(group="resgym.commands"):
        commands.add_parser(entry.name, help=f"see resgym {entry.name} --help", add_help=False)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code (2 for bad input, with one line on stderr)."""
    from resgym.polynomials.parse import ParseError

    given = list(sys.argv[1:] if arguments is None else arguments)
    for entry in entry_points(group="resgym.commands"):  # functions of the arguments
        if given[:1] == [entry.name]:
            try:
                return int(entry.load()(given[1:]))
            except ImportError as error:  # it needs an extra that is not installed
                print(f"resgym {entry.name}: {one_line(error)}", file=sys.stderr)
                return 2
    args = _parser().parse_args(given)
    try:
        with command_line(getattr(args, "trust", False)):
            args.run(args)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (head, less) has closed the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, TypeError, OSError) as error:
        # The second line of a ParseError is the input, with a caret below it.
        text = str(error) if isinstance(error, ParseError) else one_line(error)
        print(f"resgym {args.command}: {text}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        sys.stdout.flush()
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
