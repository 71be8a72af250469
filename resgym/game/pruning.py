"""Which points of a set matter: the minimal ones in canonical order, or the vertices alone.

A point of a set S is a vertex of conv(S) + R^D_{>=0} exactly when no mean of the other points is <=
it on all axes. The option ``newton`` keeps these alone; they are found in Python integers, exactly.
"""

from __future__ import annotations

import torch
from torch import Tensor

from resgym.game import devices
from resgym.game.exact import is_vertex

# Above every coordinate that a state may hold, so that absent rows dominate nothing.
_ABSENT = 2**62


def used_rows(count: Tensor, num_rows: int) -> int:
    """Return how many leading rows must be processed, for ``count`` int64 [N] alive ones.

    On the CPU, where reading a value is free, this is the number of the fullest game; elsewhere all
    rows, so that nothing waits for the device.
    """
    if not devices.is_host_memory(count.device) or not len(count):
        return num_rows
    return max(int(count.max()), 1)


def _count(mask: Tensor, axis: int) -> Tensor:
    """Return the number of True entries along an axis, in the narrowest type that holds it."""
    narrow = torch.uint8 if mask.shape[axis] < 256 else torch.int16
    return mask.view(torch.uint8).sum(axis, dtype=narrow)


def prune_dominated(columns: Tensor, count: Tensor, num_rows: int) -> tuple[Tensor, Tensor]:
    """Keep the minimal points of every game and sort them.

    All pairs are compared, with the games innermost so that every comparison runs over contiguous
    memory; neither the shapes nor the work depend on the data, except for `used_rows` on the CPU.

    The first ``count``, int64 [N] and at least 1, of the points ``columns``, int64 [D, W, N], are
    alive. ``num_rows``, P, is at least what any game keeps.

    Returns:
        points: int64 [N, P, D], the distinct minimal points first, in descending lexicographic
            order; absent rows are -1.
        count: int64 [N], number of these points.
    """
    dimension, given, num_games = columns.shape
    width = min(used_rows(count, given), given)
    columns = columns[:, :width]
    row = torch.arange(width, device=columns.device)
    alive = row[:, None] < count
    columns = torch.where(alive, columns, _ABSENT)

    # covers[i, j]: point j <= point i in all axes. above[i, j]: point j comes before point i in
    # descending lexicographic order, decided at the first axis where they differ.
    covers = above = torch.zeros(0)
    for axis in reversed(range(dimension)):
        at_least = columns[axis][:, None] >= columns[axis][None]
        if axis == dimension - 1:
            covers = at_least
            above = ~at_least
        else:
            above = ~at_least | (above & at_least & at_least.transpose(0, 1))
            covers = covers & at_least
    # Of equal points the first row stays.
    later = (row[:, None] <= row)[..., None]
    dropped = covers & ~(covers.transpose(0, 1) & later)
    # Reductions over bytes are many times faster than over booleans.
    kept = alive & (dropped.view(torch.uint8).amax(1) == 0)
    rank = _count(above & kept[None], 1)
    # Dropped points go to an extra row, which is cut off.
    target = torch.where(kept, rank.to(torch.int64), width)
    ordered = columns.new_full((dimension, width + 1, num_games), -1)
    ordered.scatter_(1, target.expand(dimension, width, num_games), columns)
    points = columns.new_full((num_games, num_rows, dimension), -1)
    width = min(width, num_rows)
    points[:, :width] = ordered[:, :width].permute(2, 1, 0)
    return points, _count(kept, 0).to(torch.int64)


def newton_vertices(points: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """Keep the vertices of the Newton polyhedron of every game.

    The result is exact for all coordinates. On an accelerator this waits for the device.

    The first ``count`` int64 [N] rows of the points int64 [N, P, D], 0..2^59, are distinct, and
    none is >= another one on all axes. The vertices keep their order, absent rows are -1.
    """
    games = points.tolist()
    sizes = count.tolist()
    points = points.clone()
    count = count.clone()
    for row, (game, size) in enumerate(zip(games, sizes, strict=True)):
        alive = game[:size]
        kept = [point for point in alive if is_vertex(point, alive)]
        if len(kept) < size:
            points[row, : len(kept)] = points.new_tensor(kept)
            points[row, len(kept) :] = -1
            count[row] = len(kept)
    return points, count
