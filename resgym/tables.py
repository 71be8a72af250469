"""Tables as text, Markdown, HTML and LaTeX."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from resgym.game.formulas import latex
from resgym.texts import markdown, markup, printable

Rows = Sequence[Sequence[str]]
"""The heading and the rows of a table."""


class Table:
    """A result that prints as a table, and that notebooks show as one."""

    def table_rows(self) -> Rows:
        """Return the heading and the rows, as text; by default, the entries of ``to_dict``."""
        plain: dict[str, Any] = self.to_dict()  # type: ignore[attr-defined]
        return [("", "value"), *((name, _cell(value)) for name, value in plain.items())]

    def __str__(self) -> str:
        return text_table(self.table_rows())

    def to_latex(self) -> str:
        """Return a ``tabular`` for LaTeX."""
        heading, *rows = (" & ".join(map(latex, row)) + r" \\" for row in self.table_rows())
        columns = "l" + "r" * heading.count(" & ")
        lines = (rf"\begin{{tabular}}{{{columns}}}\hline", heading, r"\hline", *rows)
        return "\n".join([*lines, r"\hline\end{tabular}", ""])

    def _repr_html_(self) -> str:
        heading, *rows = ([markup(cell) for cell in row] for row in self.table_rows())
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
