"""Measures as plots: tables of rho, and how a measure grows while a player learns.

Everything is drawn on figures of its own, so nothing here touches the state of ``pyplot``.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from resgym.files import output_file, write_file
from resgym.measure.rho import CrossPlay
from resgym.render.shapes import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PLOT_ENDINGS", "Curve", "plot_curves", "plot_file", "plot_rho_table"]

PLOT_ENDINGS = (".png", ".svg", ".pdf")

DPI = 130
LEGEND_INSIDE = 5
"""A longer legend stands beside the axes: it would cover the curves."""

# Told apart in grey and by people who see colours differently (Okabe and Ito, "Color Universal
# Design", 2008), and by their markers.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
MARKERS = "osD^vPX"
LEVEL_STYLES = ("--", ":", "-.", (0, (6, 2, 1, 2, 1, 2)))
LEVEL_COLOUR = "#66727f"


@dataclass(frozen=True)
class Curve:
    """One line of a plot.

    Attributes:
        label: for the legend.
        x: places, ascending.
        y: as many values; not a number where there is none.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]


def plot_file(path: str | os.PathLike[str], name: str = "path") -> Any:
    """The path of a plot that can be written.

    Args:
        path: ending in .png, .svg or .pdf, in a folder that exists.
        name: what to call the argument in messages.

    Raises:
        ValueError: it cannot, or matplotlib is not installed.
    """
    require_matplotlib("a plot")
    return output_file(path, PLOT_ENDINGS, name)


def plot_rho_table(
    table: CrossPlay | Mapping[str, Mapping[str, float]],
    path: str | os.PathLike[str] | None = None,
    *,
    title: str = "rho: games finished per move",
) -> Figure:
    """A table of rho as a grid of shaded cells with the numbers in them.

    Hosts are rows, agents columns; the darker a cell, the sooner the host's games end. A star marks
    pairings some of whose games were cut.

    Args:
        table: what `resgym.cross_play` returns, or rho by host and agent.
        path: file to write; ending in .png, .svg or .pdf.
        title: above the grid.

    Returns:
        The figure; a notebook shows it.

    Raises:
        ValueError: the table is empty or has holes, a value is no rho, the file cannot be written,
            or matplotlib is not installed.
    """
    require_matplotlib("a plot")
    target = None if path is None else plot_file(path)
    hosts, agents, values, cut = _cells(table)
    from matplotlib.figure import Figure

    size = (1.6 + 0.09 * max(map(len, hosts)) + 1.1 * len(agents), 1.5 + 0.5 * len(hosts))
    figure = Figure(figsize=(max(size[0], 4.2), max(size[1], 2.4)), layout="constrained")
    axes = figure.add_subplot()
    top = max(max(row) for row in values) or 1.0
    image = axes.imshow(values, cmap="Blues", vmin=0.0, vmax=top, aspect="auto")
    for row, line in enumerate(values):
        for column, value in enumerate(line):
            axes.text(
                column,
                row,
                f"{value:.3f}{'*' if cut[row][column] else ''}",
                ha="center",
                va="center",
                color="white" if value > 0.55 * top else "#1d2733",
            )
    slanted = max(map(len, agents)) > 13
    axes.set_xticks(
        range(len(agents)),
        agents,
        rotation=30 if slanted else 0,
        ha="right" if slanted else "center",
        rotation_mode="anchor" if slanted else "default",
    )
    axes.set_yticks(range(len(hosts)), hosts)
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    # White lines between the cells.
    axes.set_xticks([place + 0.5 for place in range(len(agents) - 1)], minor=True)
    axes.set_yticks([place + 0.5 for place in range(len(hosts) - 1)], minor=True)
    axes.grid(which="minor", color="white", linewidth=2)
    axes.tick_params(which="minor", length=0)
    note = "\n* some games were cut" if any(map(any, cut)) else ""
    axes.set(xlabel=f"agent{note}", ylabel="host")
    figure.suptitle(title, fontsize="medium")
    figure.colorbar(image, ax=axes, shrink=0.9)
    _save(figure, target)
    return figure


def _cells(
    table: CrossPlay | Mapping[str, Mapping[str, float]],
) -> tuple[list[str], list[str], list[list[float]], list[list[bool]]]:
    """Names of rows and columns, rho, and whether games were cut."""
    if isinstance(table, CrossPlay):
        results = [[table.results[host][agent] for agent in table.agents] for host in table.hosts]
        return (
            table.hosts,
            table.agents,
            [[result.rho for result in row] for row in results],
            [[result.unfinished > 0 for result in row] for row in results],
        )
    hosts = list(table)
    agents = list(next(iter(table.values()), {}))
    if not hosts or not agents:
        raise ValueError("table must have a host and an agent, got none")
    values = []
    for host in hosts:
        missing = set(agents).symmetric_difference(table[host])
        if missing:
            raise ValueError(
                f"table must have the same agents for each host, {host!r} differs in "
                f"{', '.join(sorted(missing))}"
            )
        row = [float(table[host][agent]) for agent in agents]
        for agent, value in zip(agents, row, strict=True):
            if not 0 <= value <= 1:
                raise ValueError(f"table[{host!r}][{agent!r}] must be from 0 to 1, got {value}")
        values.append(row)
    return hosts, agents, values, [[False] * len(agents) for _ in hosts]


def plot_curves(
    curves: Sequence[Curve],
    path: str | os.PathLike[str] | None = None,
    *,
    levels: Mapping[str, float] | None = None,
    xlabel: str = "gradient updates",
    ylabel: str = "rho",
    title: str = "",
) -> Figure:
    """Learning curves, with level lines to compare them with.

    Args:
        curves: at least one.
        path: file to write; ending in .png, .svg or .pdf.
        levels: heights of the level lines by name, such as the rho of scripted players.
        xlabel: what x is.
        ylabel: what y is.
        title: above the axes.

    Returns:
        The figure; a notebook shows it.

    Raises:
        ValueError: no curve, one without a finite value or with as many x as y, the file cannot
            be written, or matplotlib is not installed.
    """
    require_matplotlib("a plot")
    target = None if path is None else plot_file(path)
    if not curves:
        raise ValueError("curves must have at least one curve, got none")
    for curve in curves:
        if len(curve.x) != len(curve.y):
            raise ValueError(
                f"curve {curve.label!r} must have as many x as y, got {len(curve.x)} and "
                f"{len(curve.y)}"
            )
        if not any(math.isfinite(value) for value in curve.y):
            raise ValueError(f"curve {curve.label!r} must have a finite value, got {curve.y}")
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

    entries = len(curves) + len(levels or {})
    beside = entries > LEGEND_INSIDE
    figure = Figure(figsize=(9.5 if beside else 7.0, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for number, curve in enumerate(curves):
        axes.plot(
            curve.x,
            curve.y,
            # A single measurement has no line; many have no need of markers.
            marker=MARKERS[number % len(MARKERS)] if len(curve.x) <= 60 else "",
            markersize=4.5,
            color=COLOURS[number % len(COLOURS)],
            label=curve.label,
        )
    for number, (name, value) in enumerate((levels or {}).items()):
        style: Any = LEVEL_STYLES[number % len(LEVEL_STYLES)]
        axes.axhline(value, linestyle=style, color=LEVEL_COLOUR, label=f"{name} {value:.3f}")
    axes.set(xlabel=xlabel, ylabel=ylabel, title=title)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.grid(color="#e6eaee", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if beside:
        figure.legend(loc="outside right upper", fontsize="small")
    else:
        axes.legend(loc="best", fontsize="small")
    _save(figure, target)
    return figure


def _save(figure: Figure, target: Any) -> None:
    if target is None:
        return
    # Into memory first: what is written to a file is written as a whole.
    content = io.BytesIO()
    figure.savefig(content, format=target.suffix.lower()[1:], dpi=DPI)
    write_file(target, content.getvalue())
