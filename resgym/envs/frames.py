"""Frames of games: which modes there are for them, and one as text or picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from resgym.game.spec import Point, check_choice
from resgym.texts import format_move, format_position, shown
from resgym.trust import packaged

TEXT_MODES = ("ansi", "human")
RENDER_MODES = (*TEXT_MODES, "rgb_array", "svg")
PICTURE_DIMENSIONS = (2, 3)


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
        require = packaged("resgym.pictures.shapes:require_matplotlib")
        require("render_mode 'rgb_array'", RenderModeError)
    return render_mode


def render_modes(dimension: int) -> list[str]:
    """Return the modes that can draw games with this many axes."""
    return [*(RENDER_MODES if dimension in PICTURE_DIMENSIONS else TEXT_MODES)]


def render_game(
    points: list[Point],
    coords: Sequence[int],
    move: int,
    render_mode: str,
    last: tuple[Sequence[int], int] | None,
) -> Any:
    """Return one frame of one game; arguments are those of `resgym.pictures.games.picture_of`.

    Returns:
        ``ansi``: text; ``svg``: a stand-alone SVG file as text; ``rgb_array``: uint8 [H, W, 3],
        always of one size.
    """
    if render_mode in TEXT_MODES:
        played = f": {format_move(*last)}" if last else ""
        return f"move {move}{played}\n{format_position(points, coords)}\n"
    return packaged("resgym.pictures.games:frame")(points, coords, move, render_mode, last)
