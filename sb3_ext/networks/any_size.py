"""A features extractor for every number of points and axes, equivariant in both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, reduce
from itertools import combinations
from typing import Any

import torch
from gymnasium import spaces
from torch import Tensor, nn

from resgym.game.spec import action_axes
from sb3_ext.config.checks import check_count
from sb3_ext.networks.extractors import EXTRACTORS, PointExtractor
from sb3_ext.networks.rows import Rows, pair_features, point_features, points_of, pool, quotients

# Of the sums in `_sums`: the larger with the smaller one, and sums of axes with single ones.
_GAMES = ([0, 4, 5, 6, 6], [1, 0, 1, 0, 1])
_SEEN = 7 * 3 + len(_GAMES[0]) * 2 + 2


@cache
def axis_pairs(dimension: int) -> list[tuple[int, int]]:
    """The K pairs of axes, the lower axis first."""
    return list(combinations(range(dimension), 2))


@cache
def _parts_of_sets(dimension: int) -> list[list[list[int]]]:
    """Of each of the host's sets: its axes, the other axes, and the pairs of axes inside it."""
    sets, named = action_axes(dimension), list(enumerate(axis_pairs(dimension)))
    return [
        [list(axes) for axes in sets],
        [[axis for axis in range(dimension) if axis not in axes] for axes in sets],
        [[pair for pair, two in named if {*two} <= {*axes}] for axes in sets],
    ]


def _highest(x: Tensor, groups: Sequence[Sequence[int]] | None = None) -> Tensor:
    """From [N, K, F] the maximum over all K, [N, F], or over each group, [N, G, F]; 0 for none."""
    parts = x.unbind(1)
    if groups is None:
        return reduce(torch.maximum, parts)
    none = x.new_zeros(len(x), x.shape[2])
    return torch.stack(
        [reduce(torch.maximum, [parts[k] for k in g]) if g else none for g in groups], 1
    )


def _features_of_pairs(differences: Tensor) -> Tensor:
    """What the network is told of pairs of points on pairs of axes.

    Args:
        differences: of one point minus another, [Q, D].

    Returns:
        [Q, K, F] for the K pairs of axes: `pair_features` of the larger and the smaller difference,
        their sum, that of the other axes, of all but the larger, of all but the smaller, of all;
        then `quotients` of five pairs of these and the largest of the sum beside another axis.
    """
    number, dimension = differences.shape
    first, second = map(list, zip(*axis_pairs(dimension), strict=True))
    exact = differences.double()  # so that the order of axes makes no difference
    high = torch.maximum(exact[:, first], exact[:, second])
    low = torch.minimum(exact[:, first], exact[:, second])
    total, both = exact.sum(1, keepdim=True).expand_as(high), high + low
    parts = (high, low, both, total - both, total - high, total - low, total)
    sums = torch.stack(parts, 2).to(differences.dtype)
    games = quotients(sums.flatten(0, 1), _GAMES).view(*high.shape, 2 * len(_GAMES[0]))
    beside = torch.cat([sums[:, :, 2], differences, differences.new_zeros(number, 1)], 1)
    others = quotients(beside, _sums_beside_axes(dimension))
    others = others.view(number, 2, len(first), dimension - 1).amax(3).transpose(1, 2)
    return torch.cat([pair_features(sums), games, others], 2)


@cache
def _sums_beside_axes(dimension: int) -> tuple[list[int], list[int]]:
    """Columns: each pair of axes with every other axis, and with a column of zeros behind them."""
    pairs = axis_pairs(dimension)
    found = [
        (pair, len(pairs) + axis)
        for pair, two in enumerate(pairs)
        for axis in range(dimension + 1)
        if axis not in two
    ]
    left, right = zip(*found, strict=True)
    return list(left), list(right)


@EXTRACTORS.register("any_size")
class AnySizeExtractor(PointExtractor):
    """Encode pairs of points on pairs of axes, and pool until one vector is left for each action.

    No weight belongs to a point or an axis, and all pooling takes maxima. So the same network plays
    every number of points and axes, and other names of these change nothing but the names of the
    actions. A network of this extractor has one output, the value of an action; ``net_arch`` has
    the layers before it.

    Every set is shifted and scaled to its canonical position. Each ordered pair of points is
    encoded on each pair of axes, and pooled over the other points. Each entry of the set, a point
    on an axis, then gets maxima over its pairs of axes, over its point and over its axis. Pooling
    over points describes the axes. An action of the host is described by its axes, the other axes
    and the pairs of axes inside; one of an agent by its axis.

    Args:
        observation_space: as for `PointSetExtractor`, of any size.
        pair_width: features of pairs.
        width: features of entries, axes and actions.

    Raises:
        ValueError: the space has no points, or a width is below 1.
    """

    per_action = True

    def __init__(
        self, observation_space: spaces.Space[Any], pair_width: int = 48, width: int = 64
    ) -> None:
        super().__init__("any_size", observation_space)
        self.pair_width = pairs = check_count("pair_width", pair_width)
        self._features_dim = width = check_count("width", width)
        layer = nn.Linear
        self.pair, self.pair_again = layer(_SEEN, pairs), layer(pairs, pairs)
        self.pair_all = layer(pairs, pairs, bias=False)
        self.entry, self.entry_all = layer(pairs, width), layer(pairs, width, bias=False)
        self.entry_told = layer(3 + len(self.beside), width, bias=False)
        self.entry_again, self.row = layer(width, width), layer(width, width, bias=False)
        self.column = layer(width, width, bias=False)
        self.axis, self.axis_again = layer(width, width), layer(width, width)
        self.axis_all = layer(width, width, bias=False)
        self.inside, self.whole = layer(width, width), layer(width + 1, width, bias=False)
        if not self.beside:  # of a host, whose actions are sets
            self.outside = layer(width, width, bias=False)
            self.inner_pairs = layer(pairs, width, bias=False)
            self.sizes = layer(2, width, bias=False)

    def forward(self, observations: Tensor | Mapping[str, Tensor]) -> Tensor:
        """From observations, points float [N, P, D], to features of actions [N, A, width]."""
        rows = Rows(points_of(observations))
        dimension = rows.points.shape[1]
        named = list(enumerate(axis_pairs(dimension)))
        by_axis = [[pair for pair, two in named if axis in two] for axis in range(dimension)]
        first, second, others = rows.pairs()
        told = _features_of_pairs(rows.points[first] - rows.points[second])
        pairs = self.pair(told).relu_()
        pairs = _sum(self.pair_again(pairs), self.pair_all(_highest(pairs)))
        around = _pool(pairs, others)  # [R, K, F]
        told = point_features(rows.points).view(-1, 3, dimension).transpose(1, 2)
        for key in self.beside:
            given = rows.spread(observations[key].to(told.dtype))  # type: ignore[index]
            told = torch.cat([told, given[:, :, None]], 2)
        own = self.entry(_highest(around, by_axis)) + self.entry_told(told)
        entry = _sum(own, self.entry_all(_highest(around)))  # [R, D, F]
        own = self.entry_again(entry)
        own = own + rows.spread(self.column(_pool(entry, rows.groups)).flatten(1)).view_as(own)
        entry = _sum(own, self.row(_highest(entry)))
        axes = self.axis(_pool(entry, rows.groups)).relu_()
        axes = _sum(self.axis_again(axes), self.axis_all(_highest(axes)))  # [N, D, F]
        count = rows.count[:, None].to(axes.dtype).log1p()
        whole = self.whole(torch.cat([_highest(axes), count], 1))
        if self.beside:
            return _sum(self.inside(axes), whole)
        inside, outside, inner = _parts_of_sets(dimension)
        sizes = axes.new_tensor([[1 / len(a), 1 / (1 + dimension - len(a))] for a in inside])
        pairs = self.inner_pairs(_pool(around, rows.groups))
        features = _highest(self.inside(axes), inside) + _highest(self.outside(axes), outside)
        return _sum(features + _highest(pairs, inner) + self.sizes(sizes), whole)


def _pool(x: Tensor, groups: Tensor) -> Tensor:
    """Maxima over groups of the first dimension of [R, K, F], 0 where there is none."""
    return pool(x.flatten(1).contiguous(), groups, mean=False).view(len(groups), *x.shape[1:])


def _sum(x: Tensor, over: Tensor) -> Tensor:
    """The positive part of [N, K, F] plus one of [N, F] for all K."""
    return (x + over[:, None]).relu_()
