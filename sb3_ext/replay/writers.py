"""Parallel steps put together from the row ranges of several writers."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import torch
from torch import Tensor


class RowRanges:
    """Transitions of some of N rows, waiting for those of the others in the same time slot."""

    def __init__(self, num_rows: int) -> None:
        self.num_rows = num_rows
        self._widths: dict[int, int] = {}
        self._waiting: dict[int, deque[dict[str, Tensor]]] = {}

    def clear(self) -> None:
        """Forget the writers and what waits."""
        self._widths.clear()
        self._waiting.clear()

    def add(self, first_row: int, entries: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Takes one transition of M consecutive rows, each field `[M, ...]`, and copies it.

        Returns:
            The fields of the oldest slot `[N, ...]` once all of its rows have come, else none.

        Raises:
            ValueError: the rows are not in 0..N-1, or another writer has some of them.
        """
        width = len(next(iter(entries.values())))
        end = first_row + width
        if not 0 <= first_row < end <= self.num_rows:
            raise ValueError(
                f"first_row: got {first_row} for {width} rows, the buffer has {self.num_rows}"
            )
        for first, other in self._widths.items():
            if first < end and first_row < first + other and (first, other) != (first_row, width):
                raise ValueError(
                    f"first_row: rows {first_row} to {end - 1} belong in part to the writer of"
                    f" rows {first} to {first + other - 1}"
                )
        self._widths[first_row] = width
        queue = self._waiting.setdefault(first_row, deque())
        queue.append({name: value.clone() for name, value in entries.items()})
        present = sum(self._widths[first] for first, each in self._waiting.items() if each)
        if present < self.num_rows:
            return {}
        parts = [self._waiting[first].popleft() for first in sorted(self._waiting)]
        return {
            name: torch.cat([part[name].to(parts[0][name].device) for part in parts])
            for name in parts[0]
        }
