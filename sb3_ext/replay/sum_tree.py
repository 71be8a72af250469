"""Places drawn in proportion to numbers, for batches of places at a time."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

WIDTH = 32
"""Numbers of a block."""

TOP = 2**14
"""Sums at the top, at most. To add all of them up takes less time than a level more."""


class SumTree:
    """Numbers >= 0, the sums of blocks of them, the sums of blocks of those, up to the top.

    No operation waits for the device. Sums are always taken anew, of whole blocks, so errors of
    rounding do not add up.

    Args:
        size: How many numbers, all 0 at first.
        device: Where they are kept, as float64.
    """

    def __init__(self, size: int, device: torch.device) -> None:
        self.size = size
        self._levels = []
        for length in _lengths(size):
            self._levels.append(torch.zeros(length, dtype=torch.float64, device=device))

    @staticmethod
    def num_bytes(size: int) -> int:
        """Memory of a tree of so many numbers."""
        return 8 * sum(_lengths(size))

    @property
    def values(self) -> Tensor:
        """The numbers, a view `[size]`."""
        return self._levels[0][: self.size]

    @property
    def total(self) -> Tensor:
        """Sum of all numbers, a scalar."""
        return self._levels[-1].sum()

    def put(self, index: Tensor, values: Tensor) -> None:
        """Replace the numbers at places `[B]` int64; of a place given twice either one stays."""
        self._levels[0][index] = values.double()
        for lower, upper in zip(self._levels, self._levels[1:], strict=False):
            index = index // WIDTH
            upper[index] = lower.view(-1, WIDTH)[index].sum(dim=1)

    def put_range(self, first: int, end: int, values: Tensor) -> None:
        """Replace the numbers from `first` to before `end` by one, or by as many."""
        self._levels[0][first:end] = values
        for lower, upper in zip(self._levels, self._levels[1:], strict=False):
            first, end = first // WIDTH, (end - 1) // WIDTH + 1
            upper[first:end] = lower.view(-1, WIDTH)[first:end].sum(dim=1)

    def find(self, masses: Tensor) -> Tensor:
        """The places `[B]` at which sums of the numbers from the first on exceed masses `[B]`.

        A place whose number is 0 is never found, whatever the rounding, if any other is not.
        """
        sums = self._levels[-1].cumsum(dim=0)
        masses = torch.minimum(masses, _just_below(sums[-1]))
        place = torch.searchsorted(sums, masses, right=True)
        below = pad(sums, (1, 0))[place]
        for level in reversed(self._levels[:-1]):
            sums = level.view(-1, WIDTH).index_select(0, place).cumsum(dim=1)
            masses = torch.minimum(masses - below, _just_below(sums[:, -1]))
            child = torch.searchsorted(sums, masses[:, None], right=True)
            place = place * WIDTH + child[:, 0]
            if level is not self._levels[0]:
                below = pad(sums, (1, 0)).gather(1, child)[:, 0]
        return place

    def move(self, device: torch.device) -> None:
        """Keep the numbers on another device."""
        self._levels = [level.to(device) for level in self._levels]


def _lengths(size: int) -> list[int]:
    """How many numbers, or sums, each level holds: whole blocks."""
    found = []
    while size > TOP:
        size = -(-size // WIDTH)
        found.append(size * WIDTH)
    return [*found, size]


def _just_below(number: Tensor) -> Tensor:
    return torch.nextafter(number, torch.zeros_like(number))
