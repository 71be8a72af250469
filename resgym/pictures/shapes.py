"""Flat pictures: a list of shapes in pixels, written as SVG or drawn into an array."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from resgym.texts import markup

Point = tuple[float, float]
FONT = "'DejaVu Sans', Verdana, Arial, sans-serif"
# Widths of a character over the font size, in DejaVu Sans and Verdana, the widest of these fonts:
# digits, and what is narrow. Both ways of drawing use them.
CHARACTER, NARROW = 0.64, 0.46
_NARROW = " ,.:;()[]fijlrt⁰¹²³⁴⁵⁶⁷⁸⁹"


class Line(NamedTuple):
    """A straight line."""

    start: Point
    end: Point
    colour: str
    width: float = 1.0
    dashed: bool = False


class Polygon(NamedTuple):
    """A filled area without outline; an ``opacity`` below 1 shows what lies behind it."""

    corners: Sequence[Point]
    fill: str
    opacity: float = 1.0


class Circle(NamedTuple):
    """A disc with an outline."""

    centre: Point
    radius: float
    fill: str
    colour: str


class Text(NamedTuple):
    """One line of text.

    ``position`` is on its baseline, at its ``anchor``: ``start``, ``middle`` or ``end``. ``markup``
    is the text as SVG.
    """

    position: Point
    text: str
    colour: str
    size: float = 11.0
    anchor: str = "start"
    bold: bool = False
    markup: str = ""


Shape = Line | Polygon | Circle | Text


class Picture(NamedTuple):
    """Shapes in the order of drawing, on white; x goes right and y down, in pixels."""

    width: int
    height: int
    shapes: Sequence[Shape]
    title: str


def text_width(text: str, size: float) -> float:
    """Return the pixels that a text takes, rather too many than too few."""
    return size * sum(NARROW if each in _NARROW else CHARACTER for each in text)


def picture_to_svg(picture: Picture) -> str:
    """A stand-alone SVG file with a white ground, as text.

    The title is told when the mouse rests on the ground, and read to those who cannot see.
    """
    size = f'width="{picture.width}" height="{picture.height}"'
    box = f'viewBox="0 0 {picture.width} {picture.height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" {box} font-family="{FONT}">'
    title, ground = f"<title>{markup(picture.title)}</title>", f'<rect {size} fill="#ffffff"/>'
    return "\n".join([head, title, ground, *map(_svg_shape, picture.shapes), "</svg>", ""])


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _svg_shape(shape: Shape) -> str:
    if isinstance(shape, Line):
        (x1, y1), (x2, y2) = shape.start, shape.end
        dashes = ' stroke-dasharray="4 3"' if shape.dashed else ""
        return (
            f'<line x1="{_number(x1)}" y1="{_number(y1)}" x2="{_number(x2)}" y2="{_number(y2)}" '
            f'stroke="{shape.colour}" stroke-width="{_number(shape.width)}"{dashes}/>'
        )
    if isinstance(shape, Polygon):
        corners = " ".join(f"{_number(x)},{_number(y)}" for x, y in shape.corners)
        opacity = "" if shape.opacity == 1 else f' fill-opacity="{shape.opacity:g}"'
        return f'<polygon points="{corners}" fill="{shape.fill}"{opacity}/>'
    if isinstance(shape, Circle):
        x, y = shape.centre
        return (
            f'<circle cx="{_number(x)}" cy="{_number(y)}" r="{_number(shape.radius)}" '
            f'fill="{shape.fill}" stroke="{shape.colour}" stroke-width="1.5"/>'
        )
    x, y = shape.position
    weight = ' font-weight="bold"' if shape.bold else ""
    return (
        f'<text x="{_number(x)}" y="{_number(y)}" font-size="{_number(shape.size)}" '
        f'fill="{shape.colour}" text-anchor="{shape.anchor}"{weight}>'
        f"{shape.markup or markup(shape.text)}</text>"
    )


def require_matplotlib(what: str, kind: type[ValueError] = ValueError) -> None:
    """Refuse early what could not be drawn later.

    Raises:
        ValueError: matplotlib is not installed; the error is of this kind.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise kind(f"{what} needs matplotlib, which is not installed: resgym[plots]")


def picture_to_rgb(picture: Picture) -> np.ndarray:
    """Return the picture as uint8 [height, width, 3].

    Raises:
        ValueError: matplotlib is not installed.
    """
    require_matplotlib("a picture as an array")
    # Use its renderer alone, without figures and axes: a frame takes milliseconds, and the global
    # state of pyplot is untouched.
    from matplotlib.backends.backend_agg import RendererAgg

    width, height = picture.width, picture.height
    renderer = RendererAgg(width, height, 72)
    ground = Polygon(((0, 0), (width, 0), (width, height), (0, height)), "#ffffff")
    for shape in (ground, *picture.shapes):
        _draw(renderer, shape)
    return np.asarray(renderer.buffer_rgba())[:, :, :3].copy()


def _draw(renderer: Any, shape: Shape) -> None:
    from matplotlib.colors import to_rgba
    from matplotlib.font_manager import FontProperties
    from matplotlib.path import Path
    from matplotlib.transforms import Affine2D

    context = renderer.new_gc()
    context.set_foreground(shape.fill if isinstance(shape, Polygon) else shape.colour)
    if isinstance(shape, Text):
        weight = "bold" if shape.bold else "normal"
        font = FontProperties(family="DejaVu Sans", size=shape.size, weight=weight)
        x, y = shape.position
        if shape.anchor != "start":
            width, _, _ = renderer.get_text_width_height_descent(shape.text, font, False)
            x -= width if shape.anchor == "end" else width / 2
        renderer.draw_text(context, x, y, shape.text, font, 0)
        return
    fill = None
    if isinstance(shape, Line):
        path, width = Path([shape.start, shape.end]), shape.width
        if shape.dashed:
            context.set_dashes(0, [4, 3])
    elif isinstance(shape, Polygon):
        path, width = Path([*shape.corners, shape.corners[0]], closed=True), 0.0
        fill = to_rgba(shape.fill, shape.opacity)
    else:
        path, width = Path.circle(shape.centre, shape.radius), 1.5
        fill = to_rgba(shape.fill)
    context.set_linewidth(width)
    upside_down = Affine2D().scale(1, -1).translate(0, renderer.height)
    renderer.draw_path(context, path, upside_down, fill)
