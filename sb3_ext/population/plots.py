"""A population as pictures: Elo over rounds, and who scores what against whom."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from resgym.measure.plots import COLOURS, plain_axes, plot_file, plot_table, save_figure
from sb3_ext.population.league import League

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_elo(league: League, path: Path | None = None) -> Figure:
    """Elo of every member's versions over rounds, the best of each round as a thick line.

    Returns:
        The figure; a notebook shows it.

    Raises:
        ValueError: the file cannot be written, or matplotlib is not installed.
    """
    target = plot_file(path)
    from matplotlib.ticker import MaxNLocator

    figure, axes = plain_axes(7.0, 4.2)
    for role, colour in zip(league.roles, COLOURS, strict=False):
        rounds: dict[int, dict[int, float]] = {}  # member -> round -> Elo
        for version in league.versions.values():
            if version.role == role:
                rounds.setdefault(version.member, {})[version.round] = version.elo
        for ratings in rounds.values():
            axes.plot(list(ratings), list(ratings.values()), color=colour, alpha=0.35, linewidth=1)
        best = {number: max(each[number] for each in rounds.values()) for number in rounds[0]}
        (line,) = axes.plot(list(best), list(best.values()), label=f"best {role}", color=colour)
        line.set(marker="o", markersize=4.5, linewidth=2.2)
    axes.set(xlabel="round", ylabel="Elo (mean of round 1: 0)")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(loc="best", fontsize="small")
    save_figure(figure, target)
    return figure


def plot_payoffs(league: League, path: Path | None = None) -> Figure:
    """Scores of the first role's versions in the league against the second's, strongest first.

    Returns and raises as `plot_elo`.
    """
    rows, columns = (
        sorted(league.present(role), key=lambda name: -league.versions[name].elo)
        for role in league.roles
    )
    values = [[league.payoffs[row][column] for column in columns] for row in rows]
    named = {name: f"{version.round}.{version.member}" for name, version in league.versions.items()}
    first, second = (f"{role}: round.member, strongest first" for role in league.roles)
    return plot_table(
        values,
        [named[name] for name in rows],
        [named[name] for name in columns],
        path,
        texts=[[f"{value:.3f}" for value in row] for row in values],
        xlabel=second,
        ylabel=first,
        title=f"score of the {league.roles[0]}",
        bottom=min(map(min, values)),
        width=0.7,
    )
