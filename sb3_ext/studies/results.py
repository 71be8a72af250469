"""The results page: how good are the hosts, measured from the saved models by one command.

Writes results.md, results.json and the pictures of the trees of one singularity:

  python -m sb3_ext.studies.results --out docs
  python -m sb3_ext.studies.results --out docs --host robust=runs/robust

Depths and nodes of the trees of sixteen singularities, optimal choices in held-out positions by
number of points and by least depth, depths in the worst case on larger positions and on
x^a + y^b + z^c, and rho from 20 points. The attack of `sb3_ext.attack` has results of its own,
which are copied into the page.

The positions are drawn anew. Whether a position is held out is decided by its canonical form alone,
so none of them was taught by a dataset of the same share, whatever its seed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

import resgym
from resgym.files import write_file
from resgym.players import Player, resolve_player
from resgym.players.trust import add_trust, trusting
from sb3_ext.checkpoints.provenance import provenance
from sb3_ext.studies.attack.table import Results, markdown
from sb3_ext.studies.markdown import markdown_table
from sb3_ext.studies.teach.benchmark import (
    AGENTS,
    as_drawn,
    brieskorn_pham_starts,
    compared_depths,
    draws_beside,
    least_depths,
    right_choices,
)
from sb3_ext.studies.teach.dataset import load_dataset
from sb3_ext.studies.teach.draws import Draws
from sb3_ext.studies.teach.examples import Examples, examples_of
from sb3_ext.studies.teach.families import read_teach_config
from sb3_ext.studies.teach.generate import Plan, generate

__all__ = ["host_row", "main", "page"]

HOSTS = ("zeillinger", "spivakovsky", "taught", "robust")
HELD_OUT = 0.05
LABEL_BUDGET = 300_000


def host_row(
    host: Player,
    examples: Examples,
    draws: Draws,
    powers: Sequence[Any],
    least: Sequence[int | None],
    *,
    names: Sequence[str],
    larger: int,
    games: int,
    max_depth: int = 40,
) -> dict[str, Any]:
    """Everything that is measured of one host.

    Args:
        host: a host in three axes.
        examples: held-out positions.
        draws: held-out positions as often as they are drawn.
        powers: the positions of x^a + y^b + z^c.
        least: their proved least depths.
        names: singularities.
        larger: how many positions of 6 to 8 points to grow trees from.
        games: games of each rho.
        max_depth: branches are cut after so many moves.
    """
    trees = {
        name: resgym.resolution_tree(resgym.singularity(name), host, max_depth=max_depth)
        for name in names
    }
    right = right_choices(host, examples)
    small = examples.count <= 5

    def share(chosen: Tensor) -> dict[str, Any]:
        return {"positions": int(chosen.sum()), "optimal": int(right[chosen].sum())}

    large = ((examples.count >= 6) & (examples.count <= 8)).nonzero()[:larger, 0]
    chosen = examples.select(large)
    starts = [
        rows[:count].tolist()
        for rows, count in zip(chosen.points, chosen.count.tolist(), strict=True)
    ]
    return {
        "trees": {
            name: {
                "depth": tree.depth,
                "nodes": tree.num_nodes,
                "complete": not any(chart.is_cut for chart in tree),
            }
            for name, tree in trees.items()
        },
        "held_out": {
            "up_to_5_points": share(small),
            "as_drawn": as_drawn(host, draws),
            "by_points": {
                number: share(examples.count == number)
                for number in examples.count.unique().tolist()
            },
            "by_least_depth": {
                number: share(small & (examples.value == number))
                for number in examples.value[small].unique().tolist()
            },
        },
        "points_6_to_8": compared_depths(host, starts, chosen.value.tolist(), max_depth),
        "brieskorn_pham": compared_depths(host, powers, least, max_depth),
        "rho": {agent: resgym.rho(host, agent, games=games, seed=0).rho for agent in AGENTS},
    }


def _optima(names: Sequence[str]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for name in names:
        found[name] = {}
        for objective in ("depth", "nodes"):
            solution = resgym.solve(resgym.singularity(name), objective)
            if not solution.proved or not isinstance(solution.value, int):
                raise RuntimeError(f"{name}: {solution}")
            found[name][objective] = solution.value
    return found


def _held_out(plan: Plan, workers: int) -> Examples:
    """Labelled positions that no dataset with the same share of held-out ones has taught."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "data"
        generate(plan, out, workers=workers, progress=sys.stderr.isatty())
        data: Any = load_dataset(out)
        return examples_of(data.split("held_out"))


# --------------------------------------------------------------------------------------- the page


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def _size(tree: Mapping[str, Any], least: int) -> tuple[str, str]:
    if not tree["complete"]:
        return "not finished", "-"
    depth = str(tree["depth"])
    return f"**{depth}**" if tree["depth"] == least else depth, str(tree["nodes"])


def _shares(found: Mapping[str, Any], part: str, numbers: Sequence[Any]) -> list[list[str]]:
    """A row for each number, a column for each host."""
    rows = []
    for number in numbers:
        each = [host["held_out"][part].get(number) for host in found["hosts"].values()]
        positions = next((share["positions"] for share in each if share), 0)
        cells = [_percent(share["optimal"], share["positions"]) if share else "-" for share in each]
        rows.append([str(number), str(positions), *cells])
    return rows


def page(found: Mapping[str, Any], attack: str) -> str:
    """The page as Markdown.

    Args:
        found: what `main` writes to results.json, keys as text.
        attack: the tables of the attack.
    """
    hosts = found["hosts"]
    names = list(hosts)
    optima = found["optima"]
    singularities = []
    for name, best in optima.items():
        cells = [_size(hosts[host]["trees"][name], best["depth"]) for host in names]
        singularities.append(
            [name, str(best["depth"]), str(best["nodes"]), *(text for two in cells for text in two)]
        )
    least = [
        str(
            sum(
                h["trees"][n]["complete"] and h["trees"][n]["depth"] == optima[n]["depth"]
                for n in optima
            )
        )
        for h in hosts.values()
    ]
    measures = [["singularities in the least depth, of " + str(len(optima)), *least]]
    for part, text in (("up_to_5_points", "distinct ones"), ("as_drawn", "as often as drawn")):
        shares = (host["held_out"][part] for host in hosts.values())
        measures.append(
            [
                f"optimal choices, held out, up to 5 points, {text}",
                *(_percent(share["optimal"], share["positions"]) for share in shares),
            ]
        )
    for key, title in (
        ("points_6_to_8", "6 to 8 points"),
        ("brieskorn_pham", "x^a + y^b + z^c"),
    ):
        for part, text in (("optimal", "in the least depth"), ("within_one", "within one of it")):
            measures.append(
                [
                    f"{title}: {text}",
                    *(_percent(h[key][part], h[key]["positions"]) for h in hosts.values()),
                ]
            )
    measures += [
        [f"rho against {agent}, 20 points", *(f"{h['rho'][agent]:.3f}" for h in hosts.values())]
        for agent in AGENTS
    ]
    first = next(iter(hosts.values()))
    numbers = {
        part: sorted(first["held_out"][part], key=int) for part in ("by_points", "by_least_depth")
    }
    setup = found["setup"]
    pictures = "\n\n".join(
        f"{title}:\n\n![{setup['picture']}: {title}](images/{file})"
        for file, title in found["pictures"]
    )
    return f"""# Results

Made by `{setup["command"]}` from the saved models, at commit {setup["commit"]}; the figures as
data are in [results.json](results.json). What is measured is told in [teaching.md](teaching.md).

{markdown_table(["", *names], measures)}

The {first["held_out"]["up_to_5_points"]["positions"]} held-out positions of up to 5 points, \
{first["points_6_to_8"]["positions"]} of 6 to 8 points and {first["brieskorn_pham"]["positions"]} \
polynomials x^a + y^b + z^c with exponents to {setup["brieskorn_pham"]} were not taught.
Depths are those of the worst case; rho is over {setup["games"]} games each.

## Singularities

Depth and nodes of each host's tree; **bold**: the least depth that is possible. The least depth
and the fewest nodes need not belong to one tree.

{
        markdown_table(
            [
                "",
                "least depth",
                "fewest nodes",
                *(text for name in names for text in (f"{name}: depth", "nodes")),
            ],
            singularities,
        )
    }

## Held-out positions

Share of optimal choices.

{markdown_table(["points", "positions", *names], _shares(found, "by_points", numbers["by_points"]))}

{
        markdown_table(
            ["least depth", "positions", *names],
            _shares(found, "by_least_depth", numbers["by_least_depth"]),
        )
    }

## Attack

Every player is frozen and opponents are trained against it; see [attack.md](attack.md).

{attack or "No results yet."}

## Trees of {setup["picture"]}

{pictures}
"""


# ------------------------------------------------------------------------------------ command line


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m sb3_ext.studies.results",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the page")
    add_trust(parser)
    parser.add_argument(
        "--host",
        action="append",
        default=[],
        dest="hosts",
        metavar="NAME=PLAYER",
        help=f"a further host: a player's name or a saved model (always: {', '.join(HOSTS)})",
    )
    parser.add_argument(
        "--positions",
        type=int,
        default=60_000,
        help="positions drawn, a twentieth of which is held out (default 60000)",
    )
    parser.add_argument("--larger", type=int, default=300, help="of 6 to 8 points (default 300)")
    parser.add_argument(
        "--brieskorn-pham", type=int, default=9, help="highest exponent, 2 to 30 (default 9)"
    )
    parser.add_argument("--games", type=int, default=4000, help="games of each rho (default 4000)")
    parser.add_argument("--names", nargs="+", metavar="NAME", help="singularities (default: all)")
    parser.add_argument("--picture", default="E8", help="singularity that is drawn (default E8)")
    parser.add_argument(
        "--attack",
        type=Path,
        default=Path("docs/attack.json"),
        help="results of the attack (default docs/attack.json)",
    )
    parser.add_argument("--seed", type=int, default=1, help="of the positions (default 1)")
    parser.add_argument("--workers", type=int, default=2, help="processes that label (default 2)")
    return parser


def _players(given: Sequence[str]) -> dict[str, Player]:
    players = {name: resolve_player(name, "host", resgym.GameSpec()) for name in HOSTS}
    for text in given:
        name, equals, player = text.partition("=")
        if not equals or not name or not player:
            raise ValueError(f"host must be NAME=PLAYER, got {text!r}")
        if name in players:
            raise ValueError(f"host: {name} is there already")
        players[name] = resolve_player(player, "host", resgym.GameSpec())
    return players


def _check(args: argparse.Namespace) -> None:
    for name, low in (("positions", 100), ("larger", 1), ("games", 1), ("workers", 1)):
        if getattr(args, name) < low:
            raise ValueError(f"{name} must be at least {low}, got {getattr(args, name)}")
    if not 2 <= args.brieskorn_pham <= 30:
        raise ValueError(f"brieskorn-pham must be in 2..30, got {args.brieskorn_pham}")
    for name in (*(args.names or ()), args.picture):
        resgym.singularity(name)


def _draw_trees(out: Path, name: str, players: Mapping[str, Player]) -> list[tuple[str, str]]:
    """The pictures' files and titles."""
    start = resgym.singularity(name)
    trees = {"least depth": resgym.solve(start).tree}
    trees |= {title: resgym.resolution_tree(start, host) for title, host in players.items()}
    pictures = []
    for title, tree in trees.items():
        if tree is None:
            continue
        file = f"tree_{name}_{title.replace(' ', '_')}.svg"
        write_file(out / "images" / file, tree.to_svg(layout="outline"))
        pictures.append((file, f"{title}, {tree.depth} moves deep, {tree.num_nodes} charts"))
    return pictures


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and writes; returns the exit code (2 for bad input, with one line on stderr)."""
    args = _parser().parse_args(arguments)
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        _check(args)
        with trusting(args.trust):
            players = _players(args.hosts)
        attack = markdown(Results(args.attack))
        names = args.names or resgym.singularity_names()
        print("labelling held-out positions", file=sys.stderr)
        plan = Plan(read_teach_config("default"), args.positions, seed=args.seed, held_out=HELD_OUT)
        examples = _held_out(plan, args.workers)
        draws = draws_beside(plan)
        powers = brieskorn_pham_starts(args.brieskorn_pham)
        least = least_depths(powers, LABEL_BUDGET)
        rows = {}
        for name, host in players.items():
            print(f"measuring {name}", file=sys.stderr)
            rows[name] = host_row(
                host,
                examples,
                draws,
                powers,
                least,
                names=names,
                larger=args.larger,
                games=args.games,
            )
        (args.out / "images").mkdir(parents=True, exist_ok=True)
        command = ["python", "-m", "sb3_ext.studies.results", *given]
        made = provenance(args.seed, command)
        found = {
            "setup": {
                "brieskorn_pham": args.brieskorn_pham,
                "command": " ".join(command),
                "commit": made["commit"],
                "games": args.games,
                "picture": args.picture,
                "positions": args.positions,
                "seed": args.seed,
            },
            "optima": _optima(names),
            "hosts": rows,
            "pictures": _draw_trees(args.out, args.picture, players),
        }
        text = json.dumps(found, indent=1) + "\n"
        write_file(args.out / "results.json", text)
        write_file(args.out / "results.md", page(json.loads(text), attack))
    except KeyboardInterrupt:
        return 130
    except (ValueError, OSError, RuntimeError) as error:
        print(f"results: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
