"""Text for people: errors, formulas and tables, fit for a terminal, a page or a paper."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

MOST = 500
"""Most characters of an error message."""


def short(text: str, most: int = MOST) -> str:
    """Return a text of at most this many characters; the middle of a longer one is left out."""
    half = (most - 5) // 2
    return text if len(text) <= most else f"{text[:half]} ... {text[-half:]}"


def shown(value: Any) -> str:
    """Format a value for an error on one line, shortened if it is long."""
    try:
        return short(" ".join(map(str.strip, repr(value).splitlines())), 200)
    except (RecursionError, ValueError):  # lists in lists, a number of over 4300 digits
        return "a value that is too long to show"


def printable(text: str, keep: str = "") -> str:
    """Return text for a terminal: escape characters that are neither printable nor in ``keep``.

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


Names = Sequence[str]
"""Names of the axes, which are those of the variables of a polynomial."""

AXIS_NAMES = "xyzwvutsrq"

_SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_SUBSCRIPTS = "₀₁₂₃₄₅₆₇₈₉"
_RAISED = str.maketrans("0123456789", _SUPERSCRIPTS)
_LOWERED = str.maketrans("0123456789", _SUBSCRIPTS)
PLAIN_DIGITS = str.maketrans(_SUPERSCRIPTS + _SUBSCRIPTS, "0123456789" * 2)

_NAMES = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi rho sigma tau"
_NAMES += " upsilon phi chi psi omega Gamma Delta Theta Lambda Xi Sigma Phi Psi Omega"
GREEK = dict(zip("αβγδεζηθικλμνξρστυφχψωΓΔΘΛΞΣΦΨΩ", _NAMES.split(), strict=True))
_LETTERS = {name: letter for letter, name in GREEK.items()}

_SPECIAL = {each: rf"\{each}" for each in "&%$#_{}"} | {each: rf"\{each}{{}}" for each in "^~"}
_SPECIAL |= {letter: rf"$\{name} $" for letter, name in GREEK.items()}
_SPECIAL |= {
    "\\": r"\textbackslash{}",
    "…": r"\dots{}",
    "<": "$<$",
    ">": "$>$",
    "±": r"$\pm$",
    "≠": r"$\neq$",
}
_DOLLAR = re.compile(r"(?<!\\)\$")  # those of a text itself are escaped


class Formula(str):
    """A formula for reading: ``x₁² + y⁵``."""


def latex(text: str) -> str:
    """Return text for LaTeX: special characters are escaped, a `Formula` is set between dollars."""

    def script(found: re.Match[str]) -> str:
        mark = "^" if found[0][0] in _SUPERSCRIPTS else "_"
        return f"${mark}{{{found[0].translate(PLAIN_DIGITS)}}}$"

    found = printable(text).translate(str.maketrans(_SPECIAL))  # type: ignore[arg-type]
    found = re.sub(f"[{_SUPERSCRIPTS}]+|[{_SUBSCRIPTS}]+", script, found)
    return f"${_DOLLAR.sub('', found)}$" if isinstance(text, Formula) else found


def monomial_text(point: Sequence[int], variables: Names) -> str:
    """Format a monomial as input: ``x^2*y``; ``1`` for the constant."""
    powers = [pair for pair in zip(variables, point, strict=True) if pair[1]]
    return "*".join(name if power == 1 else f"{name}^{power}" for name, power in powers) or "1"


def monomial_pretty(point: Sequence[int], variables: Names) -> str:
    """Format a monomial for reading: ``x²y``; ``1`` for the constant."""
    factors = [
        variable_pretty(name) + ("" if power == 1 else str(power).translate(_RAISED))
        for name, power in zip(variables, point, strict=True)
        if power
    ]
    return "".join(factors) or "1"


def position_pretty(
    points: Iterable[Sequence[int]], variables: Names, between: str = " + "
) -> Formula:
    """Join the monomials of a position."""
    return Formula(between.join(monomial_pretty(point, variables) for point in points))


def variable_pretty(name: str) -> str:
    """Lower the index of a variable's name, and write Greek letters: ``xi_1`` becomes ``ξ₁``."""
    letter, mark, index = name.partition("_")
    index = index.translate(_LOWERED) if index.isdigit() else mark + index
    return _LETTERS.get(letter, letter) + index


def format_axes(axes: Sequence[int], names: Names = AXIS_NAMES) -> Formula:
    """Format axes: ``{x, z}`` for the axes 0 and 2."""
    return Formula("{" + ", ".join(names[axis] for axis in axes) + "}")


def counted(number: float | None, one: str, many: str | None = None) -> str:
    """Format a number: ``1 move``, ``3 moves``; ``many`` is an irregular plural."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def format_move(axes: Sequence[int], axis: int, names: Names = AXIS_NAMES) -> str:
    """Format a move: ``host {x, y}, agent y: y becomes x + y``."""
    return (
        f"host {format_axes(axes, names)}, agent {names[axis]}: {names[axis]} becomes "
        f"{' + '.join(names[each] for each in axes)}"
    )


def format_position(
    points: Sequence[Sequence[int]], coords: Sequence[int] = (), names: Names = AXIS_NAMES
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


Data = dict[str, Any]
"""A result as plain data, for JSON."""

Rows = Sequence[Sequence[str]]
"""The heading and the rows of a table."""


class Table:
    """A result that prints as a table, and that notebooks show as one."""

    def table_rows(self) -> Rows:
        """Return the heading and the rows, as text; by default, the entries of ``to_dict``."""
        return [("", "value"), *((name, _cell(value)) for name, value in self.to_dict().items())]  # type: ignore[attr-defined]

    def __str__(self) -> str:
        return text_table(self.table_rows())

    def to_latex(self) -> str:
        """Return a ``tabular`` for LaTeX."""
        heading, *rows = (" & ".join(map(latex, row)) + r" \\" for row in self.table_rows())
        columns = "l" + "r" * heading.count(" & ")
        lines = (rf"\begin{{tabular}}{{{columns}}}\hline", heading, r"\hline", *rows)
        return "\n".join([*lines, r"\hline\end{tabular}", ""])

    def _repr_html_(self) -> str:
        heading, *rows = ([*map(markup, row)] for row in self.table_rows())
        lines = [f"<tr><th>{'<th>'.join(heading)}"]
        lines += [f"<tr><th>{'<td>'.join(row)}" for row in rows]
        return f'<table style="text-align: right; border-spacing: 1em 0">{"".join(lines)}</table>'


class Facts(Table):
    """A result that prints one fact a line."""

    def table_rows(self) -> Rows:
        """See `Table`."""
        return [(name, str(value)) for name, value in self.to_dict().items()]  # type: ignore[attr-defined]

    def __str__(self) -> str:
        return "\n".join(map(": ".join, self.table_rows()))


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join([*map(_cell, value[:4]), *("…" for _ in value[4:5])])
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def markdown_table(rows: Rows) -> str:
    """Format a Markdown table: first column left, numbers in the others right."""
    lines = [f"| {' | '.join(map(markdown, row))} |" for row in rows]
    lines.insert(1, "|---" + "|---:" * (len(rows[0]) - 1) + "|")
    return "\n".join(lines)


def text_table(rows: Rows) -> str:
    """Format a table for a terminal, with aligned columns."""
    rows = [[*map(printable, row)] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])] for row in rows)
    return "\n".join(map("  ".join, lines))


def spread(values: Iterable[float], digits: int) -> str:
    """Format a range of numbers; one number if both ends look alike."""
    return " to ".join(dict.fromkeys(f"{value:.{digits}f}" for value in values))


def percent(shares: Iterable[float]) -> str:
    """Format a range of shares, such as "98.1 %"."""
    return spread((100 * share for share in shares), 1) + " %"
