"""Tables as Markdown and as plain text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown_table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the first column stands to the left, numbers in the others to the right."""
    lines = [f"| {' | '.join(row)} |" for row in (heading, *rows)]
    lines.insert(1, "|---" + "|---:" * (len(heading) - 1) + "|")
    return "\n".join(lines)


def text_table(rows: Sequence[Sequence[str]]) -> str:
    """The same for a terminal: columns of equal width."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            [row[0].ljust(widths[0])]
            + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        )
        for row in rows
    )


def spread(values: Iterable[float], digits: int) -> str:
    """Numbers from the least to the greatest, once where they look alike."""
    return " to ".join(dict.fromkeys(f"{value:.{digits}f}" for value in values))


def percent(shares: Iterable[float]) -> str:
    """Shares of one, from the least to the greatest, such as "98.1 %"."""
    return spread((100 * share for share in shares), 1) + " %"
