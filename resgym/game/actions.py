"""The host's action numbers and their axis sets.

The actions are the numbers 1..2^D-1 that are not powers of two, in order, and bit j of a number is
axis j. For D = 3 the actions 0, 1, 2, 3 are the sets {0,1}, {0,2}, {1,2}, {0,1,2}. If sets of one
axis count too (``least`` 1, see `GameSpec.least_axes`), action k is the number k + 1.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch import Tensor


Axes = tuple[int, ...]
"""A set of axes, in ascending order."""


@cache
def action_axes(dimension: int, least: int = 2) -> tuple[Axes, ...]:
    """Return the axis set of every host action, as sorted tuples."""
    return tuple(
        tuple(axis for axis in range(dimension) if number >> axis & 1)
        for number in range(1, 2**dimension)
        if number.bit_count() >= least
    )


@cache
def host_action_table(dimension: int, device: torch.device | str = "cpu", least: int = 2) -> Tensor:
    """Return bool [A, D]: row k marks the axes of action k. Cached: do not write to it."""
    import torch

    rows = [[axis in axes for axis in range(dimension)] for axes in action_axes(dimension, least)]
    return torch.tensor(rows, device=device)


@cache
def _ranks(dimension: int, device: torch.device) -> Tensor:
    import torch

    ranks = torch.full((2**dimension,), -1)
    for action, axes in enumerate(action_axes(dimension)):
        ranks[sum(1 << axis for axis in axes)] = action
    return ranks.to(device)


def coords_to_action(coords: Tensor) -> Tensor:
    """Return the actions int64 [N] of sets, bool or integer [N, D]; -1 for fewer than two axes."""
    import torch

    dimension = coords.shape[-1]
    numbers = (coords.to(torch.int64) << torch.arange(dimension, device=coords.device)).sum(-1)
    return _ranks(dimension, coords.device)[numbers]


def pair_to_action(first: Tensor, second: Tensor, dimension: int) -> Tensor:
    """Return the actions int64 [N] of the sets {first, second}, two different axes int64 [N]."""
    return _ranks(dimension, first.device)[(1 << first) | (1 << second)]
