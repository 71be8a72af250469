"""A features extractor that compares the points of a set two by two."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import torch
from gymnasium import spaces
from stable_baselines3.common.preprocessing import get_flattened_obs_dim
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from sb3_ext.common.extractors import EXTRACTORS, flatten_entries
from sb3_ext.common.mlp import build_mlp
from sb3_ext.common.point_moves import (
    MAX_MOVE_DIMENSION,
    after_moves,
    axis_sums,
    covered_after,
    moves,
)
from sb3_ext.common.point_set import (
    canonical_points,
    group_maximum,
    point_features,
    refuse_batch_norm,
    split_point_space,
)

__all__ = ["PointPairsExtractor", "pair_features"]

# Differences of coordinates in 0..1 that are smaller are rounding; logarithms are cut off above it.
_EQUAL = 1e-6
_SMALLEST = 1e-3


def pair_features(sums: Tensor) -> Tensor:
    """What a network is told about two points: on which sets of axes is one ahead, and how far?

    A move replaces a coordinate by its sum over a set of axes, and which points are dropped after
    it is decided by the signs of the differences of such sums, so these are handed over as they
    are: sums over all sets of axes, their signs, and their logarithms with the sign, scaled to
    about -1..1.

    Args:
        sums: float [..., S], `axis_sums` of one point minus another, of coordinates in 0..1.

    Returns:
        float [..., 3 S]; odd in ``sums``. Sums below 1e-6 count as 0.
    """
    sums = sums.masked_fill(sums.abs() < _EQUAL, 0.0)
    sign = sums.sign()
    size = (sums.abs() + _SMALLEST).log() / -math.log(_SMALLEST) + 1.0
    return torch.cat([sums, sign, sign * size], -1)


class _Grouped:
    """Games sorted by their number of points, so that nothing absent is computed.

    Rows of points stand game by game, rows of pairs point by point; games with equally many points
    follow each other, and pooling them is a view.
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
            pairs.append((x[:, :, None] - x[:, _others(c)]).flatten(0, 2))
            begin += n
        self.points = torch.cat(rows)
        self.pairs = torch.cat(pairs)
        self.game = order.repeat_interleave(count[order])

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

    def pool_moves(self, net: nn.Module, points: Tensor, counts: Tensor) -> Tensor:
        """The maximum over a game's points of what a network says of them after each move.

        Args:
            net: from `point_features` to F numbers.
            points: [R, M, D], after the moves.
            counts: bool [R, M], which ones are encoded.

        Returns:
            [N, M, F]; 0 where none counts.
        """
        num_moves = counts.shape[1]
        row, number = counts.nonzero(as_tuple=True)
        encoded = net(point_features(points[row, number]))
        groups = len(self.count) * num_moves
        pooled = group_maximum(encoded, self.game[row] * num_moves + number, groups)
        return pooled.unflatten(0, (len(self.count), num_moves))

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
def _others(count: int) -> Tensor:
    """[C, C - 1]: the other points of every point."""
    index = torch.arange(count).expand(count, count)
    return index[~torch.eye(count, dtype=torch.bool)].view(count, max(count - 1, 0))


class _Dense:
    """All rows and pairs, absent ones too: shapes depend on no data."""

    def __init__(self, points: Tensor, present: Tensor) -> None:
        size = present.shape[1]
        self.present = present
        self.count = present.sum(1)
        apart = ~torch.eye(size, dtype=torch.bool, device=present.device)
        self.together = (present[:, :, None] & present[:, None] & apart).flatten(0, 1)
        points = points.masked_fill(~present[:, :, None], 0.0)
        self.points = points.flatten(0, 1)
        self.pairs = (points[:, :, None] - points[:, None]).flatten(0, 2)

    def spread(self, x: Tensor) -> Tensor:
        games, size = self.present.shape
        return x[:, None].expand(games, size, x.shape[1]).flatten(0, 1)

    def highest(self, x: Tensor) -> Tensor:
        return _highest(x.view(*self.present.shape, x.shape[1]), self.present)

    def pool_moves(self, net: nn.Module, points: Tensor, counts: Tensor) -> Tensor:
        encoded = net(point_features(points.flatten(0, 1)))
        size = self.present.shape
        encoded = encoded.view(*size, counts.shape[1], encoded.shape[1])
        absent = ~(counts.view(*size, counts.shape[1]) & self.present[:, :, None])
        pooled = encoded.masked_fill(absent[..., None], torch.finfo(encoded.dtype).min).amax(1)
        return pooled.masked_fill(absent.all(1)[..., None], 0.0)

    def pool_pairs(self, x: Tensor) -> Tensor:
        return _highest(x.view(*self.together.shape, x.shape[1]), self.together)

    def pool_points(self, x: Tensor) -> Tensor:
        x = x.view(*self.present.shape, x.shape[1])
        total = x.masked_fill(~self.present[:, :, None], 0.0).sum(1)
        mean = total / self.count.clamp(min=1)[:, None]
        return torch.cat([_highest(x, self.present), mean], 1)


def _highest(x: Tensor, present: Tensor) -> Tensor:
    """Maximum [M, F] of [M, K, F] over what is present [M, K], 0 without any."""
    highest = x.masked_fill(~present[:, :, None], torch.finfo(x.dtype).min).amax(1)
    return highest.masked_fill(~present.any(1, keepdim=True), 0.0)


@EXTRACTORS.register("point_pairs")
class PointPairsExtractor(BaseFeaturesExtractor):
    """Encodes every point and every ordered pair of points, and pools twice.

    The set is brought into a canonical position (touching every x_i = 0, largest entry 1; the moves
    do not depend on position and scale). Every point is encoded from `point_features`, every
    ordered pair from `pair_features`. A point then gets the maximum over its pairs, and
    ``context_net`` encodes both together; the maximum and the mean over the points and the
    logarithm of their number go through ``head_net``. The order of the rows has no influence, nor
    have absent rows (negative first entry).

    With ``move_net`` the network also looks one move ahead: for every move (a set of axes and one
    of them) the points that are not covered after it, brought into canonical position again, are
    encoded and pooled, and the result joins before ``head_net``; the encoding of a point is told
    which moves it survives.

    The cost grows with the square of the number of points. On a CPU only points that are present
    pass through the networks; elsewhere, and under a compiler, all rows do and absent ones are
    masked, which keeps every shape fixed. Both give the same features up to rounding.

    Args:
        observation_space: a Box [P, D] of points, or a Dict with such an entry ``points``. Other
            entries (``coords``) join after the pooling, in alphabetical order, and those with D
            values, which describe the axes, also each point.
        point_net: layers for each point, in the language of ``build_mlp``.
        pair_net: layers for each pair.
        context_net: layers for each point with its pairs.
        head_net: layers after the pooling; with none the pooled points are the features.
        move_net: layers for each point after each move, in at most 6 axes; none by default.
        activation: name or class of the activation everywhere.

    Raises:
        ValueError: the space has no points, a net is malformed, one before the head contains
            BatchNorm, whose statistics would depend on the padding, or ``move_net`` is given for
            more than 6 axes.
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        point_net: Sequence[Any] = (64,),
        pair_net: Sequence[Any] = (64, 64),
        context_net: Sequence[Any] = (128, 128),
        head_net: Sequence[Any] = (128,),
        move_net: Sequence[Any] = (),
        activation: str | type[nn.Module] = "relu",
    ) -> None:
        points, others = split_point_space("point_pairs", observation_space)
        dimension = points.shape[1]
        for name, net in (
            ("point_net", point_net),
            ("pair_net", pair_net),
            ("context_net", context_net),
            ("move_net", move_net),
        ):
            refuse_batch_norm(name, net)
        if move_net and dimension > MAX_MOVE_DIMENSION:
            raise ValueError(
                f"point_pairs: move_net is for at most {MAX_MOVE_DIMENSION} axes, got {dimension}"
            )
        beside = [key for key, space in others.items() if space.shape == (dimension,)]
        other_size = sum(get_flattened_obs_dim(space) for space in others.values())
        encoder = build_mlp(
            3 * dimension + dimension * len(beside), point_net, activation=activation
        )
        pair_encoder = build_mlp(3 * (2**dimension - 1), pair_net, activation=activation)
        num_moves = len(moves(dimension, torch.device("cpu")).axes) if move_net else 0
        after = build_mlp(3 * dimension, move_net, activation=activation) if move_net else None
        context = build_mlp(
            encoder.output_dim + pair_encoder.output_dim + num_moves,
            context_net,
            activation=activation,
        )
        ahead = num_moves * (after.output_dim + 1) if after is not None else 0
        head = build_mlp(
            2 * context.output_dim + 1 + ahead + other_size, head_net, activation=activation
        )
        super().__init__(observation_space, head.output_dim)
        self.other_keys = tuple(others)
        self.beside_keys = tuple(beside)
        self.encoder = encoder
        self.pair_encoder = pair_encoder
        self.after = after
        self.context = context
        self.head = head

    def forward(self, observations: Tensor | Mapping[str, Tensor]) -> Tensor:
        """From observations, points float [N, P, D], to features [N, features_dim]."""
        points = observations if isinstance(observations, Tensor) else observations["points"]
        points = points if points.is_floating_point() else points.float()
        present = points[:, :, 0] >= 0
        points = canonical_points(points, present)
        fixed_shapes = points.device.type != "cpu" or torch.compiler.is_compiling()
        fixed_shapes = fixed_shapes or len(points) == 0  # nothing to group
        rows = _Dense(points, present) if fixed_shapes else _Grouped(points, present)

        inputs = [point_features(rows.points)]
        if self.beside_keys:
            inputs.append(rows.spread(flatten_entries(observations, self.beside_keys)))
        encoded = self.encoder(torch.cat(inputs, 1) if len(inputs) > 1 else inputs[0])
        sums = axis_sums(rows.pairs)
        around = [encoded, rows.pool_pairs(self.pair_encoder(pair_features(sums)))]
        if self.after is not None:
            covered = rows.pool_pairs(covered_after(sums, points.shape[2], _EQUAL))
            around.append(covered)
        # The mean hides how many points there are.
        pooled = [
            rows.pool_points(self.context(torch.cat(around, 1))),
            rows.count[:, None].to(points.dtype).log1p(),
        ]
        if self.after is not None:
            pooled.append(self._look_ahead(self.after, rows, covered))
        if self.other_keys:
            pooled.append(flatten_entries(observations, self.other_keys))
        features: Tensor = self.head(torch.cat(pooled, 1))
        return features

    def _look_ahead(self, net: nn.Module, rows: _Grouped | _Dense, covered: Tensor) -> Tensor:
        """The positions after all moves, [N, M (F + 1)]: encoded, and 1 where the game is over.

        Args:
            net: from `point_features` to F numbers.
            rows: the points, R of them.
            covered: float [R, M], 1 where a point is covered after a move.
        """
        points = after_moves(rows.points)
        # Covered points are nowhere least, so the shift is that of the others.
        points = points + rows.spread(rows.highest(-points.flatten(1))).view_as(points)
        largest = rows.highest(points.amax(2) * (1.0 - covered))
        over = largest < _EQUAL  # the points that are left coincide
        points = points / rows.spread(largest.clamp(min=_EQUAL))[:, :, None]
        points = points.masked_fill(points < _EQUAL, 0.0)
        counts = (covered == 0) & ~rows.spread(over)
        pooled = rows.pool_moves(net, points, counts)
        return torch.cat([pooled.flatten(1), over.to(points.dtype)], 1)
