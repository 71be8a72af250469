"""A features extractor for every number of points and axes, equivariant in both."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, reduce
from itertools import combinations
from typing import Any

import torch
from gymnasium import spaces
from torch import Tensor, nn

from resgym.game.spec import action_axes
from sb3_ext.config.checks import check_count
from sb3_ext.networks.extractors import PointExtractor
from sb3_ext.networks.rows import (
    Observations,
    Rows,
    pair_features,
    point_features,
    points_of,
    pool,
    quotients,
)

# Of the sums in `_sums`: the larger with the smaller one, and sums of axes with single ones.
_GAMES = ([0, 4, 5, 6, 6], [1, 0, 1, 0, 1])
_SEEN = 7 * 3 + len(_GAMES[0]) * 2 + 2


@cache
def axis_pairs(dimension: int) -> list[tuple[int, int]]:
    """The K pairs of axes, the lower axis first."""
    return list(combinations(range(dimension), 2))


@cache
def _groups(dimension: int, single: bool) -> list[list[list[int]]]:
    """Each action is a set of axes or a single one; return its axes, the others, its pairs of axes.

    Pairs are those inside a set, and all that have a single axis.
    """
    sets = [(axis,) for axis in range(dimension)] if single else action_axes(dimension)
    pairs = [[len({*two} & {*axes}) for two in axis_pairs(dimension)] for axes in sets]
    return [
        [list(axes) for axes in sets],
        [[axis for axis in range(dimension) if axis not in axes] for axes in sets],
        [[k for k, both in enumerate(each) if both == max(each)] for each in pairs],
    ]


def _highest(x: Tensor, groups: Sequence[Sequence[int]]) -> Tensor:
    """From [N, K, F] the maximum over each group of numbers below K, [N, G, F]; 0 for none."""
    parts, none = x.unbind(1), x.new_zeros(len(x), x.shape[2])
    return torch.stack([reduce(torch.maximum, [parts[k] for k in g] or [none]) for g in groups], 1)


def _pool(x: Tensor, groups: Tensor) -> Tensor:
    """Maxima over groups of the first dimension of [R, K, F], 0 where there is none."""
    return pool(x.flatten(1).contiguous(), groups, mean=False).view(len(groups), *x.shape[1:])


class _Exchange(nn.Module):
    """A layer on each of [N, K, F] and the maximum over all K."""

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.own = nn.Linear(size, width)
        self.over = nn.Linear(size, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """To [N, K, width]."""
        return (self.own(x) + self.over(_highest(x, [range(x.shape[1])]))).relu_()  # type: ignore[no-any-return]


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


class AnySizeExtractor(PointExtractor):
    """Encode pairs of points on pairs of axes, and pool until one vector is left for each action.

    No weight belongs to a point or an axis, and all pooling takes maxima. So the same network plays
    every number of points and axes, and other names of these change nothing but the names of the
    actions. A network of this extractor has one output, the value of an action; ``net_arch`` has
    the layers before it.

    Every set is shifted and scaled to its canonical position. Each ordered pair of points is
    encoded on each pair of axes, and pooled over the other points. Each entry of the set, a point
    on an axis, then gets the maxima over its pairs of axes. Pooling over points describes axes and
    pairs of axes. An action, a set of axes or a single one, gets the maxima over its axes, over the
    other axes and over its pairs.

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
        pairs = check_count("pair_width", pair_width)
        self._features_dim = width = check_count("width", width)
        self.pairs = nn.Sequential(nn.Linear(_SEEN, pairs), nn.ReLU(True), _Exchange(pairs, pairs))
        size = pairs + 3 + len(self.beside)
        self.entries = nn.Sequential(_Exchange(size, width), _Exchange(width, width))
        self.axes = nn.Sequential(_Exchange(width, width), _Exchange(width, width))
        self.inside = nn.Linear(width, width)
        self.sizes = nn.Linear(3, width, bias=False)
        self.outside = nn.Linear(width, width, bias=False)
        self.inner = nn.Linear(pairs, width, bias=False)

    def forward(self, observations: Observations) -> Tensor:
        """From observations, points float [N, P, D], to features of actions [N, A, width]."""
        rows = Rows(points_of(observations))
        dimension = rows.points.shape[1]
        first, second, others = rows.pairs()
        pairs = self.pairs(_features_of_pairs(rows.points[first] - rows.points[second]))
        pairs = _pool(pairs, others)  # [R, K, F]
        told = [_highest(pairs, _groups(dimension, True)[2])]
        told.append(point_features(rows.points).view(-1, 3, dimension).transpose(1, 2))
        for key in self.beside:
            told.append(rows.spread(observations[key].to(pairs.dtype))[:, :, None])  # type: ignore[index]
        entries = self.entries(torch.cat(told, 2))  # [R, D, F]
        axes = self.axes(_pool(entries, rows.groups))
        pairs = _pool(pairs, rows.groups)
        inside, outside, inner = _groups(dimension, bool(self.beside))
        share = axes.new_tensor([[1 / len(each), len(each) / dimension] for each in inside])
        count = rows.count[:, None, None].to(axes.dtype).log1p().expand(-1, len(inside), 1)
        features = _highest(self.inside(axes), inside) + _highest(self.outside(axes), outside)
        sizes = self.sizes(torch.cat([share.expand(len(count), -1, -1), count], 2))
        return (features + _highest(self.inner(pairs), inner) + sizes).relu_()  # type: ignore[no-any-return]
