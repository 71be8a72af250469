"""Measures as plots: tables of rho, and curves of a measure during training.

Every plot uses a figure of its own, so the state of ``pyplot`` is untouched.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from resgym.files import StrPath, output_file, write_file
from resgym.measure.exploitability import Exploitability
from resgym.measure.rho import CrossPlay
from resgym.pictures.shapes import require_matplotlib
from resgym.texts import printable, shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure


PLOT_ENDINGS = (".png", ".svg", ".pdf")
DPI = 130

# Told apart in grey and by people who see colours differently (Okabe and Ito, "Color Universal
# Design", 2008), and by their markers.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
MARKERS = "osD^vPX"
LEVEL_STYLES = ("--", ":", "-.")


@dataclass(frozen=True)
class Curve:
    """One line of a plot.

    Attributes:
        label: text in the legend.
        x: positions, ascending.
        y: as many values; NaN where there is none.
        band: as many lowest and highest values, drawn as a shaded band; none if empty.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    band: Sequence[tuple[float, float]] = ()


def plot_file(path: StrPath | None, name: str = "path") -> Path | None:
    """Check the file of a plot: .png, .svg or .pdf; None for no file.

    Raises:
        ValueError: the file cannot be written, or matplotlib is not installed.
    """
    require_matplotlib("a plot")
    return None if path is None else output_file(path, PLOT_ENDINGS, name)


def plot_rho_table(table: CrossPlay, path: StrPath | None = None) -> Figure:
    """Draw a table of rho as a grid of shaded cells with numbers.

    Hosts are rows, agents columns. Darker cells have shorter games.

    Returns:
        The figure; a notebook shows it.

    Raises:
        ValueError: the file cannot be written, see `plot_file`, or matplotlib is not installed.
    """
    target = plot_file(path)
    rows, columns = table.hosts, table.agents
    values = [[table.results[host][agent].rho for agent in columns] for host in rows]
    figure, axes = _figure(max(3.0 + 1.1 * len(columns), 4.2), max(1.5 + 0.5 * len(rows), 2.4))
    top = max(map(max, values)) or 1.0
    image = axes.imshow(values, cmap="Blues", vmin=0.0, vmax=top, aspect="auto")
    for row, column in product(range(len(rows)), range(len(columns))):
        value = values[row][column]
        colour = "white" if value > 0.55 * top else "#1d2733"
        axes.text(column, row, f"{value:.3f}", ha="center", va="center", color=colour)
    axes.set_xticks(range(len(columns)), [*map(_plain, columns)], rotation=20, ha="right")
    axes.set_yticks(range(len(rows)), [*map(_plain, rows)])
    axes.set(xlabel="agent", ylabel="host")
    axes.set_title("rho: games finished per move", fontsize="medium")
    figure.colorbar(image, ax=axes, shrink=0.9)
    return _saved(figure, target)


def plot_curves(
    curves: Sequence[Curve],
    path: StrPath | None = None,
    *,
    levels: Mapping[str, float] | None = None,
    xlabel: str = "gradient updates",
    ylabel: str = "rho",
    title: str = "",
    bands: str = "95 % interval of an evaluation",
) -> Figure:
    """Draw curves, with level lines by name, such as the rho of scripted players.

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
        if not any(map(math.isfinite, curve.y)):
            raise ValueError(
                f"curve {shown(curve.label)} must have a finite value, got {shown(curve.y)}"
            )
    figure, axes = _figure(9.5, 4.2)
    axes.grid(color="#e6eaee", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    for curve, colour, marker in zip(curves, cycle(COLOURS), cycle(MARKERS), strict=False):
        # A single measurement has no line; many do not need markers.
        mark = marker if len(curve.x) <= 60 else ""
        axes.plot(
            curve.x, curve.y, marker=mark, markersize=4.5, color=colour, label=_plain(curve.label)
        )
        if curve.band:
            low, high = zip(*curve.band, strict=True)
            axes.fill_between(curve.x, low, high, color=colour, alpha=0.18, linewidth=0)
    for (name, value), style in zip((levels or {}).items(), cycle(LEVEL_STYLES), strict=False):
        axes.axhline(value, linestyle=style, color="#66727f", label=_plain(f"{name} {value:.3f}"))
    axes.set(xlabel=xlabel, ylabel=ylabel, title=title)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    legend = f"bands: {bands}" if any(each.band for each in curves) else None
    # Beside the axes, where it covers no curve.
    figure.legend(loc="outside right upper", fontsize="small", title=legend, title_fontsize="small")
    return _saved(figure, target)


def plot_exploitability(result: Exploitability, path: Any = None) -> Figure:
    """Draw best play and worst case of every start, see `plot_curves`."""
    order = np.lexsort((result.worst[:, 0], result.optimal[:, 0]))
    named = {"best play": result.optimal, result.name: result.worst}
    curves = []
    for name, bounds in named.items():
        ends = bounds[order].clip(max=result.cut)
        curves.append(Curve(name, range(len(order)), ends[:, 0].tolist(), ends.tolist()))
    bands, moves = "bounds, where they differ", f"moves, at most {result.cut}"
    return plot_curves(curves, path, xlabel="start", ylabel=moves, bands=bands)


def _plain(text: str) -> str:
    """Return text for matplotlib, which reads formulas between dollars."""
    return printable(text).replace("$", r"\$")


def _figure(width: float, height: float) -> tuple[Figure, Any]:
    """Make a figure of this size in inches, with axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def _saved(figure: Figure, target: Path | None) -> Figure:
    """Write a figure in the format of the file's suffix, if there is a file."""
    if target:
        # Draw into memory first: the file is then written as a whole.
        content = io.BytesIO()
        figure.savefig(content, format=target.suffix.lower()[1:], dpi=DPI)
        write_file(target, content.getvalue())
    return figure
