"""Labelled positions as batches of observations, and the symmetry of the axes.

Letters: M labelled positions, B rows of a batch, P points, D axes, A actions of the seat.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cache
from itertools import permutations
from typing import Any

import numpy as np
import torch
from torch import Tensor

from resgym.game.actions import coords_to_action, host_action_table
from resgym.game.rules import observe_points
from resgym.game.state import GameState
from sb3_ext.networks.mirror import rows_in_order


@dataclass(frozen=True)
class Examples:
    """Labelled positions.

    Attributes:
        points: int64 [M, P, D], alive points first in descending lexicographic order, absent rows
            -1, as they were drawn.
        count: int64 [M], alive points, at least 2.
        coords: bool [M, D], the host's sets; None if the host is to move.
        optimal: bool [M, A] with A = 2^D - D - 1, numbered as in the environments (host), or
            bool [M, D] (agent): the optimal moves, at least one in every row.
        value: int64 [M], least depth (or nodes) from the position; for the agent's seat after the
            host's choice, this move included.
        family: int64 [M], index into ``Dataset.families``; None where it is not known.
    """

    points: Tensor
    count: Tensor
    coords: Tensor | None
    optimal: Tensor
    value: Tensor
    family: Tensor | None = None

    def __len__(self) -> int:
        return len(self.count)

    def select(self, index: Tensor) -> Examples:
        """The rows of an index, int64 [B] or bool [M]; the points cut to the rows in use."""
        width = max(self.count[index].tolist(), default=1)
        cut = vars(replace(self, points=self.points[:, :width]))
        rows: dict[str, Any] = {k: None if v is None else v[index] for k, v in cut.items()}
        return Examples(**rows)


def checked(examples: Examples) -> Examples:
    """The same examples, after a look at what would teach nonsense.

    Raises:
        ValueError: there are none, or a row has no optimal move or an illegal one.
    """
    if not len(examples):
        raise ValueError("data: this part of the dataset has no positions")
    if not bool(examples.optimal.any(1).all()):
        raise ValueError("data: there is a position without an optimal move")
    if examples.coords is not None and bool((examples.optimal & ~examples.coords).any()):
        raise ValueError("data: there is an optimal axis outside of the host's set")
    return examples


def digest(examples: Examples) -> str:
    """SHA-256 of all tensors: equal for equal data, whatever file it came from."""
    result = hashlib.sha256()
    for tensor in (examples.points, examples.count, examples.optimal, examples.value):
        result.update(str(tuple(tensor.shape)).encode())
        result.update(tensor.contiguous().numpy().data)
    if examples.coords is not None:
        result.update(examples.coords.contiguous().numpy().data)
    return result.hexdigest()


@cache
def axis_orders(dimension: int) -> tuple[Tensor, Tensor]:
    """All orders of the axes, the identity first, and what each does to the host's actions.

    Returns:
        int64 [D!, D]: under order o the new axis j is the old axis ``axes[o, j]``; int64 [D!, A]:
        the new host action k is the old action ``actions[o, k]``. Shared: do not write to them.
    """
    axes = torch.tensor(list(permutations(range(dimension))), dtype=torch.int64)
    table = host_action_table(dimension)
    # New axis j is in the new set where old axis order[j] is in the old one.
    actions = [coords_to_action(table[:, order.argsort()]) for order in axes]
    return axes, torch.stack(actions)


def permute_axes(examples: Examples, order: Tensor) -> Examples:
    """The same positions with their axes renamed, row by row; labels are renamed along.

    Args:
        examples: B positions.
        order: int64 [B], numbers of `axis_orders`.
    """
    orders, actions = axis_orders(examples.points.shape[2])
    axes = orders[order]
    points = examples.points.gather(2, axes[:, None].expand_as(examples.points))
    if examples.coords is None:
        coords, moves = None, actions[order]
    else:
        coords, moves = examples.coords.gather(1, axes), axes
    optimal = examples.optimal.gather(1, moves)
    return replace(examples, points=rows_in_order(points), coords=coords, optimal=optimal)


def rename_axes(examples: Examples, source: torch.Generator) -> Examples:
    """The same positions with the axes of each in an order that is drawn; see `permute_axes`."""
    orders = len(axis_orders(examples.points.shape[2])[0])
    return permute_axes(examples, torch.randint(orders, (len(examples),), generator=source))


def observe(examples: Examples, max_num_points: int, scale: bool = True) -> Any:
    """What the environment with ``scale_observation=scale`` would show in these positions.

    Returns:
        float32 [B, max_num_points, D] for the host, a dict of these ``points`` and ``coords`` int8
        [B, D] for the agent.
    """
    missing = max_num_points - examples.points.shape[1]
    points = torch.nn.functional.pad(examples.points, (0, 0, 0, missing), value=-1)
    observed = observe_points(GameState(points, examples.count), scale)
    if examples.coords is None:
        return observed
    return {"coords": examples.coords.to(torch.int8), "points": observed}


def seeded_generator(*numbers: int) -> torch.Generator:
    """A generator for a purpose, an epoch or an update: equal numbers give equal draws."""
    word = np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(word >> np.uint64(1)))
