"""Readable positions, as text and as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from resgym.game.spec import check_choice
from resgym.polynomials.monomials import monomial_text
from resgym.render.picture import PICTURE_DIMENSIONS, draw_position
from resgym.render.shapes import Picture, picture_to_rgb, picture_to_svg, require_matplotlib

__all__ = [
    "AXIS_NAMES",
    "RENDER_MODES",
    "RenderModeError",
    "check_render_mode",
    "format_axes",
    "format_move",
    "format_position",
    "picture_of",
    "render_game",
    "render_modes",
]

AXIS_NAMES = "xyzwvutsrq"
RENDER_MODES = ("ansi", "human", "rgb_array", "svg")
PICTURE_MODES = ("rgb_array", "svg")


def format_axes(axes: Sequence[int], names: Sequence[str] = AXIS_NAMES) -> str:
    """``{x, z}`` for the axes 0 and 2."""
    return "{" + ", ".join(names[axis] for axis in axes) + "}"


def format_move(axes: Sequence[int], axis: int, names: Sequence[str] = AXIS_NAMES) -> str:
    """A move in words: ``host {x, y}, agent y: y becomes x + y``."""
    total = " + ".join(names[each] for each in axes)
    return f"host {format_axes(axes, names)}, agent {names[axis]}: {names[axis]} becomes {total}"


def format_position(
    points: list[tuple[int, ...]],
    coords: Sequence[int] | None = None,
    names: Sequence[str] = AXIS_NAMES,
) -> str:
    """The alive points as a small table, one a line, and at last the axes that the host named."""
    names = names[: len(points[0])]
    rows = [[str(value) for value in point] for point in points]
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    lines = ["  ".join(map(str.rjust, names, widths))]
    for point, row in zip(points, rows, strict=True):
        lines.append(f"{'  '.join(map(str.rjust, row, widths))}   {monomial_text(point, names)}")
    if len(points) == 1:
        lines.append("one point left: the game is over")
    elif coords:
        lines.append(f"{len(points)} points; the host named {format_axes(coords, names)}")
    else:
        lines.append(f"{len(points)} points; the host is to play")
    return "\n".join(lines)


class RenderModeError(ValueError, TypeError):
    """A mode that cannot draw this game.

    It is a TypeError too because stable-baselines3's ``make_vec_env`` asks for ``rgb_array`` by
    itself and does without pictures where that is answered by a TypeError.
    """


def check_render_mode(render_mode: str | None, dimension: int) -> str | None:
    """Refuses modes that cannot draw games of so many axes, or not on this machine.

    Raises:
        RenderModeError: pictures need 2 or 3 axes; ``rgb_array`` needs matplotlib.
        ValueError: there is no such mode.
    """
    if render_mode is None:
        return None
    check_choice("render_mode", render_mode, RENDER_MODES)
    if render_mode not in render_modes(dimension):
        raise RenderModeError(
            f"render_mode must be 'ansi' or 'human' for dimension {dimension} (pictures need 2 or "
            f"3), got {render_mode!r}"
        )
    if render_mode == "rgb_array":
        try:
            require_matplotlib("render_mode 'rgb_array'")
        except ValueError as error:
            raise RenderModeError(str(error)) from error
    return render_mode


def render_modes(dimension: int) -> list[str]:
    """The modes that can draw games of so many axes."""
    with_pictures = dimension in PICTURE_DIMENSIONS
    return [mode for mode in RENDER_MODES if with_pictures or mode not in PICTURE_MODES]


def render_game(
    points: list[tuple[int, ...]], coords: Sequence[int], move: int, render_mode: str
) -> Any:
    """One frame of one game; arguments as of `picture_of`.

    Returns:
        ``ansi``: text; ``svg``: a stand-alone SVG file as text; ``rgb_array``: uint8 [H, W, 3],
        always of one size.
    """
    if render_mode not in PICTURE_MODES:
        return f"move {move}\n{format_position(points, coords)}\n"
    picture = picture_of(points, coords, move)
    return picture_to_svg(picture) if render_mode == "svg" else picture_to_rgb(picture)


def picture_of(
    points: list[tuple[int, ...]],
    coords: Sequence[int],
    move: int,
    axis: int | None = None,
    names: Sequence[str] = AXIS_NAMES,
) -> Picture:
    """The picture of a position in a game of 2 or 3 axes.

    Args:
        points: the alive points.
        coords: axes that the host has named, if any.
        move: moves played before.
        axis: the agent's answer, if it is to be shown.
        names: of the axes.

    Raises:
        ValueError: another number of axes.
    """
    if axis is not None:
        note = format_move(coords, axis, names)
    elif len(points) == 1:
        note = "one point left: the game is over"
    elif coords:
        note = f"the host named {format_axes(coords, names)}; the agent is to play"
    else:
        note = "the host is to play"
    return draw_position(points, coords, title=f"move {move}", note=note, names=names)
