"""Draws docs/images/one_move.svg, a move of the game: python docs/images/one_move.py > FILE."""

from __future__ import annotations

import sys

from resgym.game.exact import prune
from resgym.pictures.shapes import Line, Picture, Polygon, Shape, Text, picture_to_svg

POINTS, CHOSEN, AXIS = [(2, 0, 0), (0, 3, 0), (0, 0, 5)], (0, 1), 0
INK, MUTED, HOST, AGENT = "#1f2933", "#66727f", "#cfe3f5", "#f6c9a8"
PANEL, LEFT, TOP, ROW, COLUMN = 212, 26, 150, 42, 48


def panel(number: int, head: tuple[str, str, str], rows: list, shades: dict, gone: list) -> list:
    """The shapes of one table of points: its heading, its shaded columns, its struck rows."""
    left = LEFT + number * PANEL
    shapes: list[Shape] = [Text((left, 32), head[0], INK, 19, bold=True)]
    shapes += [Text((left, 56 + 22 * line), text, INK, 16) for line, text in enumerate(head[1:])]
    for axis, colour in shades.items():
        x, low, high = left + axis * COLUMN, TOP - 40, TOP + 3 * ROW
        shapes.append(
            Polygon(((x, low), (x + COLUMN - 4, low), (x + COLUMN - 4, high), (x, high)), colour)
        )
    for axis, name in enumerate("xyz"):
        shapes.append(Text((left + axis * COLUMN + 22, TOP - 16), name, MUTED, 18, "middle", True))
    for row, point in enumerate(rows):
        base = TOP + 28 + row * ROW
        colour = MUTED if point in gone else INK
        for axis, value in enumerate(point):
            shapes.append(Text((left + axis * COLUMN + 22, base), str(value), colour, 22, "middle"))
        if point in gone:
            shapes.append(Line((left, base - 8), (left + 3 * COLUMN - 4, base - 8), "#c0392b", 3))
    return shapes


def picture() -> Picture:
    """Four tables: the points, the host's set of axes, the agent's axis, the points after."""
    moved = [
        tuple(sum(p[a] for a in CHOSEN) if axis == AXIS else p[axis] for axis in range(3))
        for p in POINTS
    ]
    left = prune(moved)
    host = dict.fromkeys(CHOSEN, HOST)
    shapes = [
        *panel(0, ("1  A position", "a set of points,", "one in each row"), POINTS, {}, []),
        *panel(1, ("2  The host", "chooses a set", "of axes: x, y"), POINTS, host, []),
        *panel(
            2,
            ("3  The agent", "chooses one of them:", "x becomes x + y"),
            moved,
            host | {AXIS: AGENT},
            [],
        ),
        *panel(
            3,
            ("4  Drop points", "≥ another point", "on every axis"),
            moved,
            {},
            [p for p in moved if p not in left],
        ),
    ]
    note = "The host wants one single point to be left, soon. The agent wants the game to go on."
    shapes.append(Text((LEFT, TOP + 3 * ROW + 36), note, INK, 16))
    return Picture(4 * PANEL + 12, TOP + 3 * ROW + 56, tuple(shapes), "One move of the game")


if __name__ == "__main__":
    sys.stdout.write(picture_to_svg(picture()))
