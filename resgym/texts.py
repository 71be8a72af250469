"""Text from files and callers, made fit for a message, a terminal, a table or a page."""

from __future__ import annotations

from html import escape
from typing import Any

MOST = 500
"""Most characters of an error message."""


def short(text: str, most: int = MOST) -> str:
    """Return a text of at most this many characters; the middle of a longer one is left out."""
    half = (most - 5) // 2
    return text if len(text) <= most else f"{text[:half]} ... {text[-half:]}"


def shown(value: Any) -> str:
    """Format a value for an error, shortened if it is long."""
    try:
        return short(repr(value), 200)
    except ValueError:  # of a whole number
        return "a number of over 4300 digits"


def printable(text: str, keep: str = "") -> str:
    """Return text for a terminal: what is not printed, beside ``keep``, is written as an escape.

    Control characters could move the cursor, rename the window or turn the reading direction.
    """
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each in keep else ascii(each)[1:-1] for each in text
    )


def one_line(message: object) -> str:
    """Return an error's message on one line, for a terminal, shortened if it is long.

    With a command's name before it and a hint behind it, the line has at most `MOST` characters.
    """
    text = " ".join(str(message).split()) or type(message).__name__
    return short(printable(text), MOST - 100)


def markup(text: str) -> str:
    """Return text for HTML and SVG."""
    return escape(printable(text, "\n\u2003"))


def markdown(text: str) -> str:
    """Return text for a cell of a table or a heading in Markdown."""
    return "".join(f"\\{each}" if each in "\\`*[]<>|&" else each for each in printable(text))
