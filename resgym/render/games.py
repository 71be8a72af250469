"""Recorded games as animations and picture strips, for two and three axes."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np

from resgym.files import output_file, write_file
from resgym.measure.games import GameRecord
from resgym.render.positions import AXIS_NAMES, format_axes, picture_of
from resgym.render.shapes import Picture, picture_to_rgb, picture_to_svg, require_matplotlib

__all__ = ["game_pictures", "game_to_gif", "game_to_html"]

STYLE = """
body { font-family: 'DejaVu Sans', Verdana, Arial, sans-serif; color: #1d2733; margin: 24px; }
h1 { font-size: 20px; }
ol { display: flex; flex-wrap: wrap; gap: 16px; list-style: none; padding: 0; }
li { border: 1px solid #d5dbe1; border-radius: 6px; flex: 1 1 420px; max-width: 720px; }
svg { width: 100%; height: auto; display: block; }
"""


def game_pictures(record: GameRecord, names: Sequence[str] = AXIS_NAMES) -> list[Picture]:
    """One picture per position, each with the move that is made in it.

    Args:
        record: a game of 2 or 3 axes.
        names: of the axes.

    Raises:
        ValueError: another number of axes.
    """
    pictures = [
        picture_of(points, axes, move, axis, names)
        for move, (points, axes, axis) in enumerate(
            zip(record.positions, record.axes, record.axis, strict=False)
        )
    ]
    return [*pictures, picture_of(record.positions[-1], (), len(record.axis), None, names)]


def game_to_gif(
    record: GameRecord,
    path: str | os.PathLike[str],
    *,
    seconds: float = 1.5,
    names: Sequence[str] = AXIS_NAMES,
) -> Path:
    """Writes a game as an animated GIF that starts over at its end.

    Each move is two frames: the position, and the same with the sets named and answered. The last
    frame stays three times as long.

    Args:
        record: a game of 2 or 3 axes.
        path: of the file; a missing ending becomes ``.gif``.
        seconds: that a move is shown.
        names: of the axes.

    Returns:
        The path written.

    Raises:
        ValueError: another number of axes, seconds that are not positive, another ending, a folder
            that does not exist, or matplotlib is not installed.
    """
    require_matplotlib("an animation")
    from PIL import Image

    if not 0 < seconds < float("inf"):
        raise ValueError(f"seconds must be a positive number, got {seconds}")
    target = Path(path) if Path(path).suffix else Path(f"{os.fspath(path)}.gif")
    output_file(target, (".gif",))
    drawn = game_pictures(record, names)
    frames: list[np.ndarray] = []
    times: list[int] = []
    for move, picture in enumerate(drawn):
        last = move == len(drawn) - 1
        if not last:
            before = picture_of(record.positions[move], (), move, None, names)
            frames.append(picture_to_rgb(before))
            times.append(int(400 * seconds))
        frames.append(picture_to_rgb(picture))
        times.append(int((3000 if last else 600) * seconds))
    images = [Image.fromarray(frame).quantize(256, dither=Image.Dither.NONE) for frame in frames]
    content = io.BytesIO()
    images[0].save(content, "GIF", save_all=True, append_images=images[1:], duration=times, loop=0)
    write_file(target, content.getvalue())
    return target


def game_to_html(record: GameRecord, *, title: str = "", names: Sequence[str] = AXIS_NAMES) -> str:
    """A page of its own that shows all positions of a game side by side.

    Args:
        record: a game of 2 or 3 axes.
        title: heading; the number of moves by default.
        names: of the axes.

    Raises:
        ValueError: another number of axes.
    """
    moves = len(record.axis)
    title = title or f"A game of {moves} {'move' if moves == 1 else 'moves'}"
    items = "\n".join(
        f"<li>{picture_to_svg(picture)}</li>" for picture in game_pictures(record, names)
    )
    played = "; ".join(
        f"{format_axes(axes, names)} → {names[axis]}"
        for axes, axis in zip(record.axes, record.axis, strict=True)
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8">'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style></head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n<p>{escape(played)}</p>\n<ol>\n{items}\n</ol>\n</body>\n</html>\n"
    )
