"""Tables as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["markdown_table"]


def markdown_table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the first column stands to the left, numbers in the others to the right.

    Args:
        heading: a text for each column.
        rows: as many texts in each.
    """
    lines = [f"| {' | '.join(row)} |" for row in (heading, *rows)]
    lines.insert(1, "|---" + "|---:" * (len(heading) - 1) + "|")
    return "\n".join(lines)
