"""Points of many games as rows for networks: only those that are there, or all of fixed shape.

Letters: N games, P rows of points each, D axes, R rows in all, Q rows of ordered pairs, F features.
Pairs stand point by point.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from sb3_ext.networks.compiled import are_plain, compiled_module
from sb3_ext.points.point_inputs import canonical_points


def shapes_are_fixed(points: Tensor) -> bool:
    """Whether shapes must not depend on data, as for CUDA graphs and compilers."""
    return points.device.type != "cpu" or torch.compiler.is_compiling()


def rows_of(observed: tuple[Tensor, Tensor], pairs: bool = False) -> Any:
    """The points of observations and which are present, as canonical rows, `pairs` too if asked."""
    points, present = observed
    if shapes_are_fixed(points) or len(points) == 0:
        return DenseRows(canonical_points(points, present), present)
    if pairs:
        return GroupedRows(canonical_points(points, present), present)
    if are_plain(points) and not points.requires_grad and _loops() is not None:
        return CompiledRows(points)
    return PackedRows(canonical_points(points, present), present)


class PackedRows:
    """Only the rows that are present: in play about one in seven, so the network costs less.

    Args:
        points: float [N, P, D].
        present: bool [N, P], which of them are there.

    Attributes:
        count: int64 [N], points of each game.
        points: [R, D], game by game.
        game: int64 [R], whose they are.
    """

    def __init__(self, points: Tensor, present: Tensor) -> None:
        self.count = present.sum(1)
        self.game, slot = present.nonzero(as_tuple=True)
        self.points = points[self.game, slot]

    def spread(self, x: Tensor) -> Tensor:
        """[N, F], one per game, to rows of points [R, F]."""
        return x.index_select(0, self.game)

    def add(self, x: Tensor, around: Tensor) -> Tensor:
        """Rows [R, F] plus what their game has [N, F]."""
        return x + self.spread(around)

    def pool_points(self, x: Tensor) -> Tensor:
        """Maximum and mean over a game's points, [N, 2 F] of [R, F], 0 without any."""
        games = len(self.count)
        highest: Tensor = _GroupMaximum.apply(x, self.game, games)  # type: ignore[no-untyped-call]
        total = x.new_zeros(games, x.shape[1]).index_add(0, self.game, x)
        return torch.cat([highest, total / self.count.clamp(min=1)[:, None]], 1)


class _GroupMaximum(torch.autograd.Function):
    """Maximum over the rows of each group, 0 without any; rows that tie share the gradient.

    The same as ``scatter_reduce("amax")``, whose own gradient takes three times as long on a CPU
    and half of the time of a small network.
    """

    @staticmethod
    def forward(context: Any, rows: Tensor, game: Tensor, games: int) -> Tensor:
        zeros = rows.new_zeros(games, rows.shape[1])
        index = game[:, None].expand_as(rows)
        highest = zeros.scatter_reduce(0, index, rows, "amax", include_self=False)
        context.save_for_backward(rows, game, highest)
        return highest

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        rows, game, highest = context.saved_tensors
        winners = (rows == highest.index_select(0, game)).to(gradient.dtype)
        ties = torch.zeros_like(highest).index_add_(0, game, winners)
        return winners * (gradient / ties).index_select(0, game), None, None


class CompiledRows(PackedRows):
    """Of points that are not canonical yet; a pass for each of what takes PackedRows a dozen.

    Args:
        points: float32 [N, P, D] on a CPU, without a gradient.
    """

    def __init__(self, points: Tensor) -> None:
        given = points.numpy()
        self.count = torch.empty(len(points), dtype=torch.int64)
        total = _loops().count_points(given, self.count.numpy())
        self.points = torch.empty(total, points.shape[2])
        self.game = torch.empty(total, dtype=torch.int64)
        _loops().pack_canonical(given, self.points.numpy(), self.game.numpy())

    def add(self, x: Tensor, around: Tensor) -> Tensor:
        """Rows [R, F] plus what their game has [N, F]."""
        if not are_plain(x, around):
            return super().add(x, around)
        added: Tensor = _AddToRows.apply(x, around, self.count)  # type: ignore[no-untyped-call]
        return added

    def pool_points(self, x: Tensor) -> Tensor:
        """Maximum and mean over a game's points, [N, 2 F] of [R, F], 0 without any."""
        if not are_plain(x):
            return super().pool_points(x)
        pooled: Tensor = _Pool.apply(x, self.count)  # type: ignore[no-untyped-call]
        return pooled


def _loops() -> Any:
    """The compiled loops, or None without numba."""
    return compiled_module("sb3_ext.points.compiled_rows")


class _Pool(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Tensor, count: Tensor) -> Tensor:
        pooled = x.new_empty(len(count), 2 * x.shape[1])
        _loops().pool(x.detach().numpy(), count.numpy(), pooled.numpy())
        context.save_for_backward(x, count, pooled)
        return pooled

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None]:
        x, count, pooled = context.saved_tensors
        result = torch.empty_like(x)
        _loops().pool_backward(
            *(each.detach().numpy() for each in (x, count, pooled)),
            gradient.contiguous().numpy(),
            result.numpy(),
        )
        return result, None


class _AddToRows(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Tensor, around: Tensor, count: Tensor) -> Tensor:
        context.save_for_backward(count)
        result = torch.empty_like(x)
        _loops().add_to_rows(
            x.detach().numpy(), around.detach().numpy(), count.numpy(), result.numpy()
        )
        return result

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        (count,) = context.saved_tensors
        of_games = gradient.new_empty(len(count), gradient.shape[1])
        _loops().sum_of_rows(gradient.contiguous().numpy(), count.numpy(), of_games.numpy())
        return gradient, of_games, None


class GroupedRows(PackedRows):
    """With pairs, and games sorted by their number of points: pooling over pairs is a view."""

    def __init__(self, points: Tensor, present: Tensor) -> None:
        count = present.sum(1)
        # Present rows first, wherever they stood.
        slots = present.to(torch.uint8).argsort(dim=1, descending=True, stable=True)
        points = points.gather(1, slots[:, :, None].expand_as(points))
        order = count.argsort(stable=True)
        self.count = count
        self.sizes = [(c, n) for c, n in enumerate(count.bincount().tolist()) if n]
        groups = points[order].split([n for _, n in self.sizes])
        self._groups = [x[:, :c] for x, (c, _) in zip(groups, self.sizes, strict=True)]
        self.points = torch.cat([x.flatten(0, 1) for x in self._groups])
        self.game = order.repeat_interleave(count[order])

    @property
    def pairs(self) -> Tensor:
        """[Q, D], one point minus another of the game, point by point."""
        of_groups = [x[:, :, None] - x[:, _other_points(x.shape[1])] for x in self._groups]
        return torch.cat([pairs.flatten(0, 2) for pairs in of_groups])

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


@cache
def _other_points(count: int) -> Tensor:
    """[C, C - 1]: the other points of every point."""
    index = torch.arange(count).expand(count, count)
    return index[~torch.eye(count, dtype=torch.bool)].view(count, max(count - 1, 0))


class DenseRows:
    """As `GroupedRows` with all rows and pairs, absent ones too: shapes depend on no data."""

    def __init__(self, points: Tensor, present: Tensor) -> None:
        self.present = present
        self.count = present.sum(1)
        self._of_games = points.masked_fill(~present[:, :, None], 0.0)
        self.points = self._of_games.flatten(0, 1)

    @property
    def pairs(self) -> Tensor:
        """Of every game [P, P, D], a point and itself included."""
        return (self._of_games[:, :, None] - self._of_games[:, None]).flatten(0, 2)

    def spread(self, x: Tensor) -> Tensor:
        """[N, F], one per game, to rows of points [R, F]."""
        games, size = self.present.shape
        return x[:, None].expand(games, size, x.shape[1]).flatten(0, 1)

    def add(self, x: Tensor, around: Tensor) -> Tensor:
        """Rows [R, F] plus what their game has [N, F]."""
        return x + self.spread(around)

    def pool_pairs(self, x: Tensor) -> Tensor:
        """The maximum over a point's pairs, [R, F]."""
        present, size = self.present, self.present.shape[1]
        apart = ~torch.eye(size, dtype=torch.bool, device=present.device)
        together = (present[:, :, None] & present[:, None] & apart).flatten(0, 1)
        return _masked_maximum(x.view(*together.shape, x.shape[1]), together)

    def pool_points(self, x: Tensor) -> Tensor:
        """Maximum and mean over a game's points, [N, 2 F]."""
        x = x.view(*self.present.shape, x.shape[1])
        total = x.masked_fill(~self.present[:, :, None], 0.0).sum(1)
        mean = total / self.count.clamp(min=1)[:, None]
        return torch.cat([_masked_maximum(x, self.present), mean], 1)


def _masked_maximum(x: Tensor, present: Tensor) -> Tensor:
    """Maximum [M, F] of [M, K, F] over what is present [M, K], 0 without any."""
    highest = x.masked_fill(~present[:, :, None], torch.finfo(x.dtype).min).amax(1)
    return highest.masked_fill(~present.any(1, keepdim=True), 0.0)
