"""Pictures of README and docs, made from docs/scoreboard.json and docs/curves.json.

  python -m benchmarks.plots

- ``profile.svg``: for each host the share of starts with V/T of at least x (Dolan and More 2002).
- ``weak_agents.svg``: strength over rho against the agents `random` and `choose_first`.
- ``regret.svg``: mean regret of a move by the length of the game under best play.
- ``curves.svg``: strength of hosts of configs/play/full.yml while they learn.
- ``win.svg``: the same of configs/play/win.yml, and of stock algorithms by their shipped files.

docs/curves.json has lists by name with rows of seed, place, strength on the first 100 starts of
`worst-20` and half of a 95 % interval. The place counts updates (``full``) or moves played.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from benchmarks.run import Parser
from resgym.benchmark import Result, load
from resgym.scoreboard import read_rows

HOSTS = ("taught", "played", "any", "zeillinger", "spivakovsky", "weak_spivakovsky", "all_coord")
ROOT = Path(__file__).parents[1]
Rows = dict[tuple[str, str], Result]


def profile(axes: Axes, rows: Rows) -> None:
    least = load("worst-20").value.numpy()
    for host in HOSTS:
        moves = np.asarray(rows[host, "worst-20"].counts)
        shares = np.sort(np.where((moves < 0) | (moves > 200), 0, least / moves))
        axes.step(shares, 1 - np.arange(len(shares)) / len(shares), label=host)
    axes.set(
        xlabel="V/T on worst-20", ylabel="share of starts with at least this V/T", xlim=(0, 1.02)
    )


def weak_agents(axes: Axes, rows: Rows) -> None:
    for host in HOSTS:
        weak = np.mean([rows[host, task].details["rho"] for task in ("first-20", "random-20")])
        axes.scatter(weak, rows[host, "worst-20"].value, label=host)
    axes.set(xlabel="mean rho against random and choose_first", ylabel="strength on worst-20")


def regret(axes: Axes, rows: Rows) -> None:
    least = np.minimum(load("moves-20").value.numpy(), 20)
    lengths = np.unique(least)
    for host in HOSTS:
        regrets = np.asarray(rows[host, "moves-20"].counts)
        axes.plot(lengths, [regrets[least == each].mean() for each in lengths], label=host)
    axes.set(
        xlabel="moves under best play, V (20: or more)", ylabel="mean regret on moves-20, moves"
    )
    axes.xaxis.get_major_locator().set_params(integer=True)


def seeds_of(name: str) -> list[np.ndarray]:
    """Place, strength and half an interval, [3, N], of each seed of a name in docs/curves.json."""
    found = np.array(json.loads((ROOT / "docs" / "curves.json").read_text())[name])
    return [found[found[:, 0] == seed, 1:].T for seed in np.unique(found[:, 0])]


def win(axes: Axes, rows: Rows) -> None:
    runs = seeds_of("win")
    moves, strengths = runs[0][0] / 1000, np.stack([strength for _, strength, _ in runs])
    axes.plot(moves, strengths.mean(0), label=f"win, mean of {len(runs)} seeds and their range")
    axes.fill_between(moves, strengths.min(0), strengths.max(0), alpha=0.2)
    for name in ("ddqn", "dqn", "ppo"):
        for moves, strength, _ in seeds_of(name):
            axes.plot(moves / 1000, strength, marker=".", label=name.upper())
    axes.axhline(
        rows["zeillinger", "worst-20"].value, color="grey", linestyle=":", label="zeillinger"
    )
    axes.set(
        xlabel="thousand moves played in training",
        ylabel="strength against every agent",
        ylim=(-0.02, 1),
    )


def curves(axes: Axes, rows: Rows) -> None:
    for seed, (updates, strength, half) in enumerate(seeds_of("full"), 1):
        axes.plot(updates, strength, label=f"seed {seed}")
        axes.fill_between(updates, strength - half, strength + half, alpha=0.2)
    axes.axhline(rows["taught", "worst-20"].value, color="grey", linestyle=":", label="taught")
    axes.set(
        xlabel="updates of 256 positions", ylabel="strength, 100 starts of worst-20", ylim=(0.84, 1)
    )


if __name__ == "__main__":
    parser = Parser(prog="benchmarks.plots", description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images", help="folder")
    out = parser.parse_args().out
    rows = {(row.player, row.task): row for row in read_rows(ROOT / "docs" / "scoreboard.json")}
    plt.rcParams.update({"svg.hashsalt": "resgym", "svg.fonttype": "none"})
    for draw in (profile, weak_agents, regret, curves, win):
        figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
        draw(axes, rows)
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(out / f"{draw.__name__}.svg", metadata={"Date": None})
