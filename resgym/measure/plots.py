"""Measures as plots: tables of rho, and curves of a measure during training.

Every plot uses a figure of its own, so the state of ``pyplot`` is untouched.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from resgym.files import output_file, write_file
from resgym.measure.rho import CrossPlay
from resgym.render.shapes import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure


PLOT_ENDINGS = (".png", ".svg", ".pdf")

DPI = 130
LEGEND_INSIDE = 5
"""Longer legends are placed beside the axes, where they cover no curve."""

# Colours can be told apart in grey and by colour-blind readers (Okabe and Ito, "Color Universal
# Design", 2008); markers help too.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
MARKERS = "osD^vPX"
LEVEL_STYLES = ("--", ":", "-.", (0, (6, 2, 1, 2, 1, 2)))
LEVEL_COLOUR = "#66727f"
BAND: Any = {"alpha": 0.18, "linewidth": 0}


@dataclass(frozen=True)
class Curve:
    """One line of a plot.

    label: text in the legend.
        x: positions, ascending.
        y: as many values; NaN where there is none.
        band: as many lowest and highest values, drawn as a shaded band; may be empty.
        band: as many lowest and highest values, drawn as a shaded band; none if empty.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    band: Sequence[tuple[float, float]] = ()


def plot_file(path: str | os.PathLike[str] | None, name: str = "path") -> Path | None:
    """Check the file of a plot: .png, .svg or .pdf; None for no file.

    Raises:
        ValueError: the file cannot be written, or matplotlib is not installed.
    """
    require_matplotlib("a plot")
    return None if path is None else output_file(path, PLOT_ENDINGS, name)


def plot_rho_table(table: CrossPlay, path: str | os.PathLike[str] | None = None) -> Figure:
    """Draw a table of rho as a grid of shaded cells with numbers.

    Hosts are rows, agents columns. Darker cells have shorter games. A star marks pairings with cut
    games.

    Returns:
        The figure; a notebook shows it.

    Raises:
        ValueError: the file cannot be written, see `plot_file`, or matplotlib is not installed.
    """
    target = plot_file(path)
    rows, columns = table.hosts, table.agents
    results = [[table.results[host][agent] for agent in columns] for host in rows]
    width = 1.6 + 0.09 * max(map(len, rows)) + 1.1 * len(columns)
    figure, axes = _figure(max(width, 4.2), max(1.5 + 0.5 * len(rows), 2.4))
    values = [[each.rho for each in row] for row in results]
    top = max(map(max, values)) or 1.0
    lines: Any = {"edgecolors": "white", "linewidth": 2}  # between the cells
    image = axes.pcolormesh(values, cmap="Blues", vmin=0.0, vmax=top, **lines)
    axes.invert_yaxis()
    cut = ""
    for row, column in product(range(len(rows)), range(len(columns))):
        each = results[row][column]
        colour = "white" if each.rho > 0.55 * top else "#1d2733"
        star = "*" if each.unfinished else ""
        cut = cut or (star and "\n* some games were cut")
        place = column + 0.5, row + 0.5
        axes.text(*place, f"{each.rho:.3f}{star}", ha="center", va="center", color=colour)
    slanted: Any = {}
    if max(map(len, columns)) > 13:
        slanted = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks([place + 0.5 for place in range(len(columns))], columns, **slanted)
    axes.set_yticks([place + 0.5 for place in range(len(rows))], rows)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set(xlabel=f"agent{cut}", ylabel="host")
    figure.suptitle("rho: games finished per move", fontsize="medium")
    figure.colorbar(image, ax=axes, shrink=0.9)
    _save(figure, target)
    return figure


def plot_curves(
    curves: Sequence[Curve],
    path: str | os.PathLike[str] | None = None,
    *,
    levels: Mapping[str, float] | None = None,
    xlabel: str = "gradient updates",
    ylabel: str = "rho",
    title: str = "",
    band: str = "bands: 95 % interval of an evaluation",
) -> Figure:
    """Draw learning curves, with level lines by name, such as the rho of scripted players.

    ``band`` explains the bands in the legend.

    Returns:
        The figure; a notebook shows it.

    Raises:
        ValueError: there is no curve, a curve has no finite value or not as many x as y, the
            file cannot be written, or matplotlib is not installed.
    """
    target = plot_file(path)
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
    from matplotlib.ticker import FuncFormatter

    entries = len(curves) + len(levels or {})
    beside = entries > LEGEND_INSIDE
    figure, axes = _figure(9.5 if beside else 7.0, 4.2)
    axes.grid(color="#e6eaee", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    for number, curve in enumerate(curves):
        # A single measurement has no line, so it needs a marker; many need none.
        marker = MARKERS[number % len(MARKERS)] if len(curve.x) <= 60 else ""
        colour = COLOURS[number % len(COLOURS)]
        axes.plot(curve.x, curve.y, marker=marker, markersize=4.5, color=colour, label=curve.label)
        if curve.band:
            axes.fill_between(curve.x, *zip(*curve.band, strict=True), color=colour, **BAND)
    for number, (name, value) in enumerate((levels or {}).items()):
        style: Any = LEVEL_STYLES[number % len(LEVEL_STYLES)]
        axes.axhline(value, linestyle=style, color=LEVEL_COLOUR, label=f"{name} {value:.3f}")
    axes.set(xlabel=xlabel, ylabel=ylabel, title=title)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    shaded = band if any(curve.band for curve in curves) else None
    legend: Any = {"fontsize": "small", "title": shaded, "title_fontsize": "small"}
    if beside:
        figure.legend(loc="outside right upper", **legend)
    else:
        axes.legend(loc="best", **legend)
    _save(figure, target)
    return figure


def _figure(width: float, height: float) -> tuple[Figure, Any]:
    """Make a figure of this size in inches, with axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def _save(figure: Figure, target: Path | None) -> None:
    """Write a figure in the format of the file's suffix, if there is a file."""
    if target is None:
        return
    # Draw into memory first: the file is then written as a whole.
    content = io.BytesIO()
    figure.savefig(content, format=target.suffix.lower()[1:], dpi=DPI)
    write_file(target, content.getvalue())
