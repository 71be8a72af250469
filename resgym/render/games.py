"""Recorded games as text and as animations."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from resgym.files import output_file, write_file
from resgym.render.positions import format_move, format_position, picture_of
from resgym.render.shapes import Picture, picture_to_rgb, require_matplotlib
from resgym.texts import AXIS_NAMES

if TYPE_CHECKING:
    from resgym.game.state import GameState


@dataclass(frozen=True)
class GameRecord:
    """One game, move by move.

    Attributes:
        positions: the positions, the start first.
        axes: the host's set of each move.
        axis: the agent's axis of each move.
        finished: one point was left in the end.
    """

    positions: list[list[tuple[int, ...]]]
    axes: list[tuple[int, ...]]
    axis: list[int]
    finished: bool

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        return {
            "finished": self.finished,
            "moves": len(self.axes),
            "positions": [[list(point) for point in points] for points in self.positions],
            "host": [list(axes) for axes in self.axes],
            "agent": list(self.axis),
        }

    def after(self, axes: tuple[int, ...], axis: int, state: GameState) -> GameRecord:
        """Return the record with one more move, which led to ``state``, a state of one game."""
        return GameRecord(
            [*self.positions, *state.point_lists()],
            [*self.axes, axes],
            [*self.axis, axis],
            bool(state.finished()),
        )

    def __str__(self) -> str:
        parts = ["start", format_position(self.positions[0], None)]
        for number, (axes, axis) in enumerate(zip(self.axes, self.axis, strict=True), 1):
            parts.append(f"\nmove {number}: {format_move(axes, axis)}")
            parts.append(format_position(self.positions[number], None))
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
            picture_of(points, axes, move, axis, names)
            for move, (points, (axes, axis)) in enumerate(zip(self.positions, moves, strict=True))
        ]

    def to_gif(
        self,
        path: str | os.PathLike[str],
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
            frames += [picture_of(self.positions[move], (), move, None, names), picture]
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
