"""The results page: how good are the hosts, measured from the saved models by one command.

Writes results.md, results.json and the pictures of the trees of one singularity:

  python -m sb3_ext.studies.results --out docs
  python -m sb3_ext.studies.results --out docs --host robust=runs/robust

What is measured is told in docs/teaching.md; the tables of `sb3_ext.attack` are copied into the
page. The positions are drawn anew. Whether a position is held out is decided by its canonical form
alone, so none of them was taught by a dataset of the same share, whatever its seed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import resgym
from resgym.cli import OneLineParser
from resgym.files import write_file
from resgym.game.spec import check_integer
from resgym.players import Player, resolve_player
from resgym.players.trust import add_trust, trusting
from resgym.tables import markdown_table
from sb3_ext.runs.command import command
from sb3_ext.runs.command_line import FAILED, add_options
from sb3_ext.runs.provenance import commit
from sb3_ext.studies.ade_table import optimum
from sb3_ext.studies.attack.table import Results, markdown
from sb3_ext.studies.teach.examples import checked
from sb3_ext.studies.teach.generate import Plan, prepared
from sb3_ext.studies.teach.measures import AGENTS, host_test, measure_host

HOSTS = ("zeillinger", "spivakovsky", "taught", "robust")
HELD_OUT = 0.05
LABEL_BUDGET = 300_000
MAX_DEPTH = 40


def _tree(host: Player, name: str) -> dict[str, Any]:
    tree = resgym.resolution_tree(resgym.singularity(name), host, max_depth=MAX_DEPTH)
    return {"depth": tree.depth, "nodes": tree.num_nodes, "complete": tree.complete}


def _percent(share: Mapping[str, Any], part: str = "optimal") -> str:
    return f"{100 * share[part] / share['positions']:.1f} %" if share["positions"] else "-"


def _shares(hosts: Mapping[str, Any], part: str) -> list[list[str]]:
    """A row for each number of points or least depth, a column for each host."""
    shares = [host["held_out"][part] for host in hosts.values()]
    rows = []
    for number, first in sorted(shares[0].items(), key=lambda item: int(item[0])):
        cells = [_percent(share[number]) for share in shares]
        rows.append([number, str(first["positions"]), *cells])  # the same positions for all
    return rows


def _singularities(found: Mapping[str, Any]) -> tuple[list[list[str]], list[str]]:
    """A row for each singularity, and the number of them that each host has in the least depth."""
    hosts, rows, least = found["hosts"], [], dict.fromkeys(found["hosts"], 0)
    for name, best in found["optima"].items():
        row = [name, str(best["depth"]), str(best["nodes"])]
        for host, measured in hosts.items():
            tree = measured["trees"][name]
            optimal = tree["complete"] and tree["depth"] == best["depth"]
            least[host] += optimal
            depth = f"**{tree['depth']}**" if optimal else str(tree["depth"])
            row += [depth, str(tree["nodes"])] if tree["complete"] else ["not finished", "-"]
        rows.append(row)
    return rows, list(map(str, least.values()))


def page(found: Mapping[str, Any], attack: str) -> str:
    """The page as Markdown, from what results.json holds and the tables of the attack."""
    hosts, names = found["hosts"], list(found["hosts"])
    singularities, least = _singularities(found)
    measures = [[f"singularities in the least depth, of {len(singularities)}", *least]]
    for part, text in (("up_to_5_points", "distinct ones"), ("as_drawn", "with repetition")):
        cells = [_percent(host["held_out"][part]) for host in hosts.values()]
        measures.append([f"optimal choices, held out, up to 5 points, {text}", *cells])
    for key, title in (("points_6_to_8", "6 to 8 points"), ("brieskorn_pham", "x^a + y^b + z^c")):
        for part, text in (("optimal", "in the least depth"), ("within_one", "within one of it")):
            cells = [_percent(host[key], part) for host in hosts.values()]
            measures.append([f"{title}: {text}", *cells])
    measures += [
        [f"rho against {agent}, 20 points", *(f"{h['rho'][agent]:.3f}" for h in hosts.values())]
        for agent in AGENTS
    ]
    first, setup = next(iter(hosts.values())), found["setup"]
    sizes = [text for name in names for text in (f"{name}: depth", "nodes")]
    by_points, by_depth = (_shares(hosts, part) for part in ("by_points", "by_least_depth"))
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

## Safe or quick

The exact worst case of each host against its rho with weak agents, see [safety.md](safety.md):

![rho with three agents over the mean exact worst case of each host](images/safety.svg)

## Singularities

Depth and nodes of each host's tree; **bold**: the least depth that is possible. The least depth
and the fewest nodes need not belong to one tree.

{markdown_table(["", "least depth", "fewest nodes", *sizes], singularities)}

## Held-out positions

Share of optimal choices.

{markdown_table(["points", "positions", *names], by_points)}

{markdown_table(["least depth", "positions", *names], by_depth)}

## Attack

The worst case of a player, proved or found by training opponents; see [attack.md](attack.md).

{attack or "No results yet."}

## Trees of {setup["picture"]}

{pictures}
"""


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m sb3_ext.studies.results",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--out", type=Path, required=True, help="folder of the page")
    add_trust(parser)
    host = f"a further host: a player's name or a saved model (always: {', '.join(HOSTS)})"
    add("--host", action="append", default=[], dest="hosts", metavar="NAME=PLAYER", help=host)
    positions = "positions drawn, a twentieth of which is held out (default %(default)s)"
    add("--positions", type=int, default=60_000, help=positions)
    add("--larger", type=int, default=300, help="of 6 to 8 points (default 300)")
    add("--brieskorn-pham", type=int, default=9, help="highest exponent, 2 to 30 (default 9)")
    add("--games", type=int, default=4000, help="games of each rho (default 4000)")
    add("--names", nargs="+", metavar="NAME", help="singularities (default: all)")
    add("--picture", default="E8", help="singularity that is drawn (default E8)")
    attack = "results of the attack (default %(default)s)"
    add("--attack", type=Path, default=Path("docs/attack.json"), help=attack)
    add("--seed", type=int, default=1, help="of the positions (default 1)")
    add_options(parser, "--workers")
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


def _draw_trees(out: Path, name: str, players: Mapping[str, Player]) -> list[tuple[str, str]]:
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


@command("results", failed=FAILED)
def main(arguments: Sequence[str]) -> int:
    """Measures and writes; returns the exit code, see `command`."""
    args = _parser().parse_args(arguments)
    typed = ["python", "-m", "sb3_ext.studies.results", *arguments]
    for name, low in (("positions", 100), ("larger", 1), ("games", 1), ("workers", 1)):
        check_integer(name, getattr(args, name), low)
    check_integer("brieskorn-pham", args.brieskorn_pham, 2, 30)
    names = args.names or resgym.singularity_names()
    for name in (*names, args.picture):
        resgym.singularity(name)
    with trusting(args.trust):
        players = _players(args.hosts)
    attack = markdown(Results(args.attack))
    print("labelling held-out positions", file=sys.stderr)
    drawn = {"positions": args.positions, "seed": args.seed, "held_out": HELD_OUT}
    plan = Plan.read({"config": "default", **drawn})
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "data"
        data = prepared(plan, out, workers=args.workers, progress=sys.stderr.isatty())
    test = host_test(checked(data.split("held_out")), plan, args.brieskorn_pham, LABEL_BUDGET)
    rows = {}
    for name, host in players.items():
        print(f"measuring {name}", file=sys.stderr)
        rows[name] = {
            "trees": {singularity: _tree(host, singularity) for singularity in names},
            **measure_host(host, test, larger=args.larger, games=args.games, max_depth=MAX_DEPTH),
        }
    (args.out / "images").mkdir(parents=True, exist_ok=True)
    shown = ("brieskorn_pham", "games", "picture", "positions", "seed")
    setup = {name: getattr(args, name) for name in shown}
    found = {
        "setup": {"command": " ".join(typed), "commit": commit(), **setup},
        "optima": {name: optimum(resgym.singularity(name)) for name in names},
        "hosts": rows,
        "pictures": _draw_trees(args.out, args.picture, players),
    }
    text = json.dumps(found, indent=1) + "\n"
    write_file(args.out / "results.json", text)
    write_file(args.out / "results.md", page(json.loads(text), attack))
    return 0


if __name__ == "__main__":
    sys.exit(main())
