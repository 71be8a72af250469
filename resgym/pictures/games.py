"""Positions and recorded games as pictures and animations."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from resgym.envs.frames import PICTURE_DIMENSIONS
from resgym.files import StrPath, output_file, write_file
from resgym.measure.games import GameRecord
from resgym.pictures.diagram import CHOSEN, INK, MUTED, Box, Points, plane_diagram, space_diagram
from resgym.pictures.shapes import Picture, Text, picture_to_rgb, picture_to_svg, require_matplotlib
from resgym.polynomials.monomials import Exponents
from resgym.texts import (
    AXIS_NAMES,
    Names,
    counted,
    format_axes,
    format_move,
    monomial_pretty,
    variable_pretty,
)

# Even numbers, as video codecs require.
WIDTH, HEIGHT = 720, 480
_PLANE = Box(66, 74, 420, 428)  # a square, so that equal spans are equal lengths
_SPACE = Box(56, 84, 440, 446)
# The list beside the picture: where its first line begins, the most rows, and the most characters
# of a monomial.
_LEFT, _BASE, _ROWS, _MOST = 496, 70.0, 21, 34
_LINE = 19.0
_NUMBER = 32.0


def picture_of(
    points: Points,
    coords: Sequence[int],
    move: int,
    names: Names = AXIS_NAMES,
    axis: int | None = None,
    last: tuple[Sequence[int], int] | None = None,
) -> Picture:
    """Return the picture of a position: its axes, and beside them the list of its monomials.

    A point carries the number under which the list has it. ``coords`` are the axes that the host
    has named, which are thick, ``axis`` is the agent's answer if it is shown; a second, smaller
    line below the title says it in words. ``last`` is the move that led here, for the title.

    Raises:
        ValueError: there are no points, or the number of axes is not 2 or 3.
    """
    dimension = len(points[0]) if points else 0
    if dimension not in PICTURE_DIMENSIONS:
        raise ValueError(f"points must have 2 or 3 axes to be drawn, got {dimension}")
    if axis is not None:
        note = f"move {move + 1}: {format_move(coords, axis, names)}"
    elif len(points) == 1:
        note = "one point left: the game is over"
    elif coords:
        note = f"the host named {format_axes(coords, names)}; the agent is to play"
    else:
        note = "the host is to play"
    draw, area = (plane_diagram, _PLANE) if dimension == 2 else (space_diagram, _SPACE)
    title = f"after {counted(move, 'move')}" if move else "start"
    title += f": {format_move(*last, names)}" if last else ""
    shapes = (
        *draw(points, coords, names, area),
        *_monomial_list(points, names),
        Text((16, 28), title, INK, 16, bold=True),
        Text((16, 48), note, CHOSEN if coords else MUTED, 12),
    )
    return Picture(WIDTH, HEIGHT, shapes, title)


def frame(points: Points, coords: Sequence[int], move: int, render_mode: str, last: Any) -> Any:
    """Return a frame in a mode of pictures; see `resgym.envs.frames.render_game`."""
    picture = picture_of(points, coords, move, last=last)
    return picture_to_svg(picture) if render_mode == "svg" else picture_to_rgb(picture)


def position_svg(points: Exponents) -> str | None:
    """Return the picture of exponents as SVG; None for more than three axes."""
    if points.dimension > 3:
        return None
    return picture_to_svg(picture_of(points, (), 0, [*map(variable_pretty, points.variables)]))


def _monomial_list(points: Points, names: Names) -> list[Text]:
    shown = points if len(points) <= _ROWS else points[: _ROWS - 1]
    base = _BASE
    lines = [Text((_LEFT, base), counted(len(points), "monomial"), MUTED)]
    for number, point in enumerate(shown, 1):
        base += _LINE
        text = monomial_pretty(point, names[: len(point)])
        text = text if len(text) <= _MOST else text[: _MOST - 1] + "…"
        lines += [
            Text((_LEFT, base), f"#{number}", MUTED),
            Text((_LEFT + _NUMBER, base), text, INK, 12),
        ]
    if len(shown) < len(points):
        lines.append(Text((_LEFT, base + _LINE), f"and {len(points) - len(shown)} more", MUTED))
    return lines


def pictures_of_game(game: GameRecord, names: Names = AXIS_NAMES) -> list[Picture]:
    """Return one picture per position, each with the move made in it.

    Raises:
        ValueError: the game has neither 2 nor 3 axes.
    """
    moves = [*zip(game.axes, game.axis, strict=True), ((), None)]
    return [
        picture_of(points, axes, move, names, axis)
        for move, (points, (axes, axis)) in enumerate(zip(game.positions, moves, strict=True))
    ]


def game_to_gif(
    game: GameRecord, path: StrPath, *, seconds: float = 1.5, names: Names = AXIS_NAMES
) -> Path:
    """Write the game as an animated GIF that loops.

    Each move has two frames of this many seconds: the position, and the same with the set and
    the answer. The last frame stays three times as long.

    Returns:
        The path of the file.

    Raises:
        ValueError: the game has neither 2 nor 3 axes, the suffix is wrong, the folder does not
            exist, or matplotlib is not installed.
    """
    require_matplotlib("an animation")
    from PIL import Image

    target = output_file(path, (".gif",))
    frames, times = [], []
    for move, picture in enumerate(pictures_of_game(game, names)):
        frames += [picture_of(game.positions[move], (), move, names), picture]
        times += [int(400 * seconds), int(600 * seconds)]
    times[-1] = int(2600 * seconds)  # a viewer holds the last position for 3
    first, *others = [
        Image.fromarray(picture_to_rgb(each)).quantize(256, dither=Image.Dither.NONE)
        for each in frames
    ]
    content = io.BytesIO()
    first.save(content, "GIF", save_all=True, append_images=others, duration=times, loop=0)
    write_file(target, content.getvalue())
    return target
