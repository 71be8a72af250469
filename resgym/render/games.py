"""Positions and recorded games as text, pictures and animations."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from resgym.files import StrPath, output_file, write_file
from resgym.game.spec import Axes, Point, check_choice
from resgym.render.diagram import (
    CHOSEN,
    INK,
    MUTED,
    Box,
    Points,
    plane_diagram,
    space_diagram,
)
from resgym.render.shapes import (
    Picture,
    Text,
    picture_to_rgb,
    picture_to_svg,
    require_matplotlib,
)
from resgym.texts import AXIS_NAMES, format_axes, monomial_pretty, monomial_text, shown

if TYPE_CHECKING:
    from resgym.game.state import GameState


RENDER_MODES = ("ansi", "human", "rgb_array", "svg")
PICTURE_MODES = ("rgb_array", "svg")

# Even numbers, as video codecs require.
WIDTH, HEIGHT = 720, 480
PICTURE_DIMENSIONS = (2, 3)

_PLANE = Box(66, 74, 420, 428)  # a square, so that equal spans are equal lengths
_SPACE = Box(56, 84, 440, 446)
# The list beside the picture: where its first line begins, the most rows, and the most characters
# of a monomial.
_LEFT, _BASE, _ROWS, _MOST = 496, 70.0, 21, 34
_LINE = 19.0
_NUMBER = 32.0


def counted(number: float | None, one: str, many: str | None = None) -> str:
    """Format a number: ``1 move``, ``3 moves``; ``many`` is an irregular plural."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def format_move(axes: Sequence[int], axis: int, names: Sequence[str] = AXIS_NAMES) -> str:
    """Format a move: ``host {x, y}, agent y: y becomes x + y``."""
    total = " + ".join(names[each] for each in axes)
    return f"host {format_axes(axes, names)}, agent {names[axis]}: {names[axis]} becomes {total}"


def format_position(
    points: list[Point],
    coords: Sequence[int] = (),
    names: Sequence[str] = AXIS_NAMES,
) -> str:
    """Format the alive points as a table, one a line, and below it the host's set."""
    names = names[: len(points[0])]
    rows = [[*map(str, point)] for point in points]
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
    """The render mode cannot draw this game.

    It is also a TypeError because stable-baselines3's ``make_vec_env`` asks for ``rgb_array`` by
    default and works without pictures if that raises a TypeError.
    """


def check_render_mode(render_mode: str | None, dimension: int) -> str | None:
    """Refuse modes that cannot draw games with this many axes, or not on this machine.

    Raises:
        RenderModeError: pictures need 2 or 3 axes; ``rgb_array`` needs matplotlib.
        ValueError: the mode is unknown.
    """
    if render_mode is None:
        return None
    check_choice("render_mode", render_mode, RENDER_MODES)
    if render_mode not in render_modes(dimension):
        raise RenderModeError(
            f"render_mode must be 'ansi' or 'human' for dimension {dimension} (pictures need 2 or "
            f"3), got {shown(render_mode)}"
        )
    if render_mode == "rgb_array":
        require_matplotlib("render_mode 'rgb_array'", RenderModeError)
    return render_mode


def render_modes(dimension: int) -> list[str]:
    """Return the modes that can draw games with this many axes."""
    drawn = dimension in PICTURE_DIMENSIONS
    return [mode for mode in RENDER_MODES if drawn or mode not in PICTURE_MODES]


def render_game(
    points: list[Point],
    coords: Sequence[int],
    move: int,
    render_mode: str,
    last: tuple[Sequence[int], int] | None = None,
) -> Any:
    """Return one frame of one game; arguments are those of `picture_of`.

    Returns:
        ``ansi``: text; ``svg``: a stand-alone SVG file as text; ``rgb_array``: uint8 [H, W, 3],
        always of one size.
    """
    if render_mode not in PICTURE_MODES:
        played = f": {format_move(*last)}" if last else ""
        return f"move {move}{played}\n{format_position(points, coords)}\n"
    picture = picture_of(points, coords, move, last=last)
    return picture_to_svg(picture) if render_mode == "svg" else picture_to_rgb(picture)


def picture_of(
    points: Points,
    coords: Sequence[int],
    move: int,
    names: Sequence[str] = AXIS_NAMES,
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
        *_list(points, names),
        Text((16, 28), title, INK, 16, bold=True),
        Text((16, 48), note, CHOSEN if coords else MUTED, 12),
    )
    return Picture(WIDTH, HEIGHT, shapes, title)


def _list(points: Points, names: Sequence[str]) -> list[Text]:
    shown = points if len(points) <= _ROWS else points[: _ROWS - 1]
    base = _BASE
    lines = [Text((_LEFT, base), counted(len(points), "monomial"), MUTED)]
    for number, point in enumerate(shown, 1):
        base += _LINE
        lines.append(Text((_LEFT, base), f"#{number}", MUTED))
        text = monomial_pretty(tuple(point), names[: len(point)])
        text = text if len(text) <= _MOST else text[: _MOST - 1] + "…"
        lines.append(Text((_LEFT + _NUMBER, base), text, INK, 12))
    if len(shown) < len(points):
        more = f"and {len(points) - len(shown)} more"
        lines.append(Text((_LEFT, base + _LINE), more, MUTED))
    return lines


class GameRecord(NamedTuple):
    """One game, move by move.

    Attributes:
        positions: the positions, the start first.
        axes: the host's set of each move.
        axis: the agent's axis of each move.
        finished: one point was left in the end.
    """

    positions: list[list[Point]]
    axes: list[Axes]
    axis: list[int]
    finished: bool

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        return {
            "finished": self.finished,
            "moves": len(self.axes),
            "positions": [[*map(list, points)] for points in self.positions],
            "host": [*map(list, self.axes)],
            "agent": list(self.axis),
        }

    def after(self, axes: Axes, axis: int, state: GameState) -> GameRecord:
        """Return the record with one more move, which led to ``state``, a state of one game."""
        return GameRecord(
            [*self.positions, *state.point_lists()],
            [*self.axes, axes],
            [*self.axis, axis],
            bool(state.finished()),
        )

    def __str__(self) -> str:
        parts = ["start", format_position(self.positions[0])]
        for number, (axes, axis) in enumerate(zip(self.axes, self.axis, strict=True), 1):
            parts.append(f"\nmove {number}: {format_move(axes, axis)}")
            parts.append(format_position(self.positions[number]))
        if not self.finished:
            parts.append(f"\nstopped after {len(self.axes)} moves")
        return "\n".join(parts)

    def pictures(self, names: Sequence[str] = AXIS_NAMES) -> list[Picture]:
        """Return one picture per position, each with the move made in it.

        Raises:
            ValueError: the game has neither 2 nor 3 axes.
        """
        moves = [*zip(self.axes, self.axis, strict=True), ((), None)]
        return [
            picture_of(points, axes, move, names, axis)
            for move, (points, (axes, axis)) in enumerate(zip(self.positions, moves, strict=True))
        ]

    def to_gif(
        self,
        path: StrPath,
        *,
        seconds: float = 1.5,
        names: Sequence[str] = AXIS_NAMES,
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
        for move, picture in enumerate(self.pictures(names)):
            frames += [picture_of(self.positions[move], (), move, names), picture]
            times += [int(400 * seconds), int(600 * seconds)]
        times[-1] = int(2600 * seconds)  # a viewer holds the last position for 3
        first, *others = [
            Image.fromarray(picture_to_rgb(frame)).quantize(256, dither=Image.Dither.NONE)
            for frame in frames
        ]
        content = io.BytesIO()
        first.save(content, "GIF", save_all=True, append_images=others, duration=times, loop=0)
        write_file(target, content.getvalue())
        return target
