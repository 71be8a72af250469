"""Tables as Markdown and as plain text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown_table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a Markdown table: first column left, numbers in the others right."""
    lines = [f"| {' | '.join(row)} |" for row in (heading, *rows)]
    lines.insert(1, "|---" + "|---:" * (len(heading) - 1) + "|")
    return "\n".join(lines)


def text_table(rows: Sequence[Sequence[str]]) -> str:
    """Format a table for a terminal, with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            [row[0].ljust(widths[0])]
            + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        )
        for row in rows
    )


def spread(values: Iterable[float], digits: int) -> str:
    """Format a range of numbers; one number if both ends look alike."""
    return " to ".join(dict.fromkeys(f"{value:.{digits}f}" for value in values))


def percent(shares: Iterable[float]) -> str:
    """Format a range of shares, such as "98.1 %"."""
    return spread((100 * share for share in shares), 1) + " %"
