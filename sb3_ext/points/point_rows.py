"""Points of many games as rows for networks: only those that are there, or all of fixed shape.

Letters: N games, P rows of points each, R rows in all, Q rows of ordered pairs, F features. Pairs
stand point by point.
"""

from __future__ import annotations

from functools import cache, cached_property

import torch
from torch import Tensor

__all__ = ["DenseRows", "GroupedRows", "masked_maximum"]


class GroupedRows:
    """Games sorted by their number of points, so that nothing absent is computed.

    Rows of points stand game by game, rows of pairs point by point; games with equally many points
    follow each other, and pooling them is a view.

    Args:
        points: float [N, P, D].
        present: bool [N, P], which of them are there.

    Attributes:
        count: int64 [N], points of each game.
        points: [R, D].
        pairs: [Q, D], one point minus another of the game.
        game: int64 [R].
    """

    def __init__(self, points: Tensor, present: Tensor) -> None:
        count = present.sum(1)
        # Present rows first, wherever they stood.
        slots = present.to(torch.uint8).argsort(dim=1, descending=True, stable=True)
        points = points.gather(1, slots[:, :, None].expand_as(points))
        order = count.argsort(stable=True)
        self.back = torch.empty_like(order).scatter_(0, order, torch.arange(len(order)))
        self.games = order
        self.count = count
        self.sizes = [(c, n) for c, n in enumerate(count.bincount().tolist()) if n]
        rows, pairs, begin = [], [], 0
        for c, n in self.sizes:
            x = points[order[begin : begin + n], :c]
            rows.append(x.flatten(0, 1))
            pairs.append((x[:, :, None] - x[:, other_points(c)]).flatten(0, 2))
            begin += n
        self.points = torch.cat(rows)
        self.pairs = torch.cat(pairs)
        self.game = order.repeat_interleave(count[order])

    @cached_property
    def own(self) -> Tensor:
        """Int64 [Q], the row of a pair's first point."""
        return torch.arange(len(self.game)).repeat_interleave(self.count[self.game] - 1)

    @cached_property
    def other(self) -> Tensor:
        """Int64 [Q], the row of a pair's second point."""
        rows, begin = [], 0
        for c, n in self.sizes:
            index = torch.arange(begin, begin + n * c).view(n, c)
            rows.append(index[:, other_points(c)].flatten())
            begin += n * c
        return torch.cat(rows)

    @cached_property
    def exists(self) -> Tensor:
        """Bool [R], all of them."""
        return torch.ones(len(self.game), dtype=torch.bool)

    def spread(self, x: Tensor) -> Tensor:
        """[N, F], one per game, to rows of points [R, F]."""
        return x.index_select(0, self.game)

    def highest(self, x: Tensor) -> Tensor:
        """Rows of points [R, F] to the maximum over a game's points, [N, F]; 0 without any."""
        width = x.shape[1]
        parts = x.split([n * c for c, n in self.sizes])
        pooled = [
            part.view(n, c, width).amax(1) if c else x.new_zeros(n, width)
            for part, (c, n) in zip(parts, self.sizes, strict=True)
        ]
        return torch.cat(pooled).index_select(0, self.back)

    def total(self, x: Tensor) -> Tensor:
        """Rows of points [R, F] to the sum over a game's points, [N, F]."""
        return x.new_zeros(len(self.count), x.shape[1]).index_add(0, self.game, x)

    def pool_pairs(self, x: Tensor) -> Tensor:
        """Rows of pairs [Q, F] to the maximum over a point's pairs, [R, F]."""
        width = x.shape[1]
        # Split in one call: slices would each have a gradient of full size.
        parts = x.split([n * c * (c - 1) for c, n in self.sizes])
        pooled = [
            part.view(n * c, c - 1, width).amax(1) if c > 1 else x.new_zeros(n * c, width)
            for part, (c, n) in zip(parts, self.sizes, strict=True)
        ]
        return torch.cat(pooled)

    def pool_points(self, x: Tensor) -> Tensor:
        """Rows of points [R, F] to maximum and mean over a game's points, [N, 2 F]."""
        width = x.shape[1]
        parts = x.split([n * c for c, n in self.sizes])
        pooled = []
        for part, (c, n) in zip(parts, self.sizes, strict=True):
            of_games = part.view(n, c, width)
            both = (of_games.amax(1), of_games.mean(1)) if c else (x.new_zeros(n, width),) * 2
            pooled.append(torch.cat(both, 1))
        return torch.cat(pooled).index_select(0, self.back)


@cache
def other_points(count: int) -> Tensor:
    """[C, C - 1]: the other points of every point."""
    index = torch.arange(count).expand(count, count)
    return index[~torch.eye(count, dtype=torch.bool)].view(count, max(count - 1, 0))


class DenseRows:
    """As `GroupedRows` with all rows and pairs, absent ones too: shapes depend on no data."""

    def __init__(self, points: Tensor, present: Tensor) -> None:
        size = present.shape[1]
        self.present = present
        self.count = present.sum(1)
        apart = ~torch.eye(size, dtype=torch.bool, device=present.device)
        self.together = (present[:, :, None] & present[:, None] & apart).flatten(0, 1)
        points = points.masked_fill(~present[:, :, None], 0.0)
        self.points = points.flatten(0, 1)
        self.pairs = (points[:, :, None] - points[:, None]).flatten(0, 2)

    @cached_property
    def own(self) -> Tensor:
        """Int64 [Q], the row of a pair's first point."""
        index = torch.arange(self.points.shape[0], device=self.points.device)
        return index.repeat_interleave(self.present.shape[1])

    @cached_property
    def other(self) -> Tensor:
        """Int64 [Q], the row of a pair's second point."""
        games, size = self.present.shape
        index = torch.arange(games * size, device=self.points.device)
        return index.view(games, 1, size).expand(games, size, size).flatten()

    @cached_property
    def exists(self) -> Tensor:
        """Bool [R], whether the point is there."""
        return self.present.flatten()

    def spread(self, x: Tensor) -> Tensor:
        """[N, F], one per game, to rows of points [R, F]."""
        games, size = self.present.shape
        return x[:, None].expand(games, size, x.shape[1]).flatten(0, 1)

    def highest(self, x: Tensor) -> Tensor:
        """The maximum over a game's points, [N, F]."""
        return masked_maximum(x.view(*self.present.shape, x.shape[1]), self.present)

    def total(self, x: Tensor) -> Tensor:
        """The sum over a game's points, [N, F]."""
        x = x.masked_fill(~self.exists[:, None], 0.0)
        return x.view(*self.present.shape, x.shape[1]).sum(1)

    def pool_pairs(self, x: Tensor) -> Tensor:
        """The maximum over a point's pairs, [R, F]."""
        return masked_maximum(x.view(*self.together.shape, x.shape[1]), self.together)

    def pool_points(self, x: Tensor) -> Tensor:
        """Maximum and mean over a game's points, [N, 2 F]."""
        x = x.view(*self.present.shape, x.shape[1])
        total = x.masked_fill(~self.present[:, :, None], 0.0).sum(1)
        mean = total / self.count.clamp(min=1)[:, None]
        return torch.cat([masked_maximum(x, self.present), mean], 1)


def masked_maximum(x: Tensor, present: Tensor) -> Tensor:
    """Maximum [M, F] of [M, K, F] over what is present [M, K], 0 without any."""
    highest = x.masked_fill(~present[:, :, None], torch.finfo(x.dtype).min).amax(1)
    return highest.masked_fill(~present.any(1, keepdim=True), 0.0)
