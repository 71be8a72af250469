"""Features extractors that know the points of a game."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from sb3_ext.networks.extractors import EXTRACTORS
from sb3_ext.networks.mlp import build_mlp
from sb3_ext.points.point_inputs import (
    PointEntries,
    axis_sums,
    build_point_net,
    canonical_points,
    pair_features,
    point_features,
    points_of,
    quotient_features,
)
from sb3_ext.points.point_rows import rows_of


@EXTRACTORS.register("ordered_points")
class OrderedPointsExtractor(BaseFeaturesExtractor):
    """One long vector: every row's features, as seen and translated to the axes.

    Has no weights, so the layers of ``net_arch`` come next. It costs a fraction of ``point_set``
    and knows what that one hides: the order of the rows, by which some players break ties, and
    where the set lies. That suits a learner that has to exploit one given player, symmetric or not.

    Each of the first ``rows`` rows gives x as observed, the `point_features` of x after the
    translation of the set to every x_i = 0 with largest coordinate 1, and whether there is a point;
    an absent row gives zeros. Other entries of the observation (``coords``) follow.

    Args:
        observation_space: a Box [P, D] of points, or a Dict with such an entry ``points``.
        rows: how many rows are read; None for all.

    Raises:
        ValueError: the space has no points, or ``rows`` is not in 1..P.
    """

    def __init__(self, observation_space: spaces.Space[Any], rows: int | None = None) -> None:
        entries = PointEntries("ordered_points", observation_space)
        rows = entries.most if rows is None else rows
        if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= entries.most:
            raise ValueError(f"rows must be in 1..{entries.most}, got {rows!r}")
        size = rows * (4 * entries.dimension + 1)
        super().__init__(observation_space, size + entries.other_size)
        self.rows = rows
        self.entries = entries

    def forward(self, observations: Tensor | Mapping[str, Tensor]) -> Tensor:
        """From observations, points float [N, P, D], to features [N, features_dim]."""
        points, there = points_of(observations)
        # Where the whole set lies counts, also if only some of its rows are read.
        moved = canonical_points(points, there)
        seen, moved = points[:, : self.rows], moved[:, : self.rows]
        present = there[:, : self.rows, None].to(points.dtype)
        features = torch.cat([seen * present, point_features(moved) * present, present], 2)
        return self.entries.with_others([features.flatten(1)], observations)


@EXTRACTORS.register("point_set")
class PointSetExtractor(BaseFeaturesExtractor):
    """Encodes every point by itself, pools over the points, and once more knowing the first result.

    Each set is first brought into its canonical position, which changes neither moves nor their
    number: a host whose network has to learn that reaches a rho of 0.14 against ``choose_first``
    instead of 0.178. Every point is encoded from ``point_features``, and the maximum and the mean
    over the points are taken. What they say is added to each point, the points are encoded and
    pooled again, and ``head_net`` follows. Absent rows, those with a negative first entry, have no
    influence.

    On a CPU only the rows that are present pass through the networks (compiled with numba, from
    float32); elsewhere, and under a
    compiler, all do and the absent ones are masked, which keeps every shape fixed. Both give the
    same features up to rounding.

    Args:
        observation_space: a Box [P, D] of points, or a Dict with such an entry ``points``. Other
            entries (``coords``) join after the pooling, those with D values also each point.
        point_net: layers for each point, in the language of ``build_mlp``.
        context_net: layers for each point in the second round; empty leaves that round out.
        head_net: layers after the pooling; with none the pooled points are the features.
        activation: name or class of the activation everywhere.

    Raises:
        ValueError: the space has no points, a net is malformed, or ``point_net`` or
            ``context_net`` contains BatchNorm, whose statistics would depend on the padding.
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        point_net: Sequence[Any] = (64, 64),
        context_net: Sequence[Any] = (64,),
        head_net: Sequence[Any] = (64,),
        activation: str | type[nn.Module] = "relu",
    ) -> None:
        entries = PointEntries("point_set", observation_space)
        encoder = build_point_net("point_net", entries.row_size, point_net, activation)
        width = encoder.output_dim
        second: dict[str, nn.Module] = {}
        pooled_size = 2 * width
        if len(context_net) > 0:
            context = build_point_net("context_net", width, context_net, activation)
            second = {"around": nn.Linear(2 * width, width), "context": context}
            pooled_size = 2 * context.output_dim
        head = build_mlp(pooled_size + 1 + entries.other_size, head_net, activation=activation)
        super().__init__(observation_space, head.output_dim)
        self.entries = entries
        self.encoder = encoder
        self.second = nn.ModuleDict(second)
        self.head = head

    def forward(self, observations: Tensor | Mapping[str, Tensor]) -> Tensor:
        """From observations, points float [N, P, D], to features [N, features_dim]."""
        rows = rows_of(points_of(observations))
        encoded = self.encoder(self.entries.rows(rows, observations))
        pooled = rows.pool_points(encoded)
        if self.second:
            # Added rather than concatenated: the large product is then one per game, not per row.
            around = self.second["around"](pooled)
            pooled = rows.pool_points(self.second["context"](rows.add(encoded, around)))
        count = rows.count[:, None].to(pooled.dtype).log1p()  # the mean hides how many there are
        return self.head(self.entries.with_others([pooled, count], observations))


@EXTRACTORS.register("point_pairs")
class PointPairsExtractor(BaseFeaturesExtractor):
    """Encodes every point and every ordered pair of points, and pools twice.

    The set is brought into a canonical position. Every point is encoded from `point_features`,
    every ordered pair from `pair_features`. A point then gets the maximum over its pairs, and
    ``context_net`` encodes both together; the maximum and the mean over the points and the
    logarithm of their number go through ``head_net``. The order of the rows has no influence, nor
    have absent rows. The cost grows with the square of the number of points.

    What passes through the networks, the arguments and the errors are as in `PointSetExtractor`,
    and ``pair_net`` are the layers for each pair, ``context_net`` those for each point with its
    pairs; ``quotients`` tells them `quotient_features` too.
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        point_net: Sequence[Any] = (64,),
        pair_net: Sequence[Any] = (64, 64),
        context_net: Sequence[Any] = (128, 128),
        head_net: Sequence[Any] = (128,),
        activation: str | type[nn.Module] = "relu",
        quotients: bool = False,
    ) -> None:
        entries = PointEntries("point_pairs", observation_space)
        no_pair = torch.zeros(0, 2**entries.dimension - 1)
        pair_size = self._pair_inputs(no_pair, quotients).shape[1]
        encoder = build_point_net("point_net", entries.row_size, point_net, activation)
        pair_encoder = build_point_net("pair_net", pair_size, pair_net, activation)
        size = encoder.output_dim + pair_encoder.output_dim
        context = build_point_net("context_net", size, context_net, activation)
        pooled_size = 2 * context.output_dim + 1
        head = build_mlp(pooled_size + entries.other_size, head_net, activation=activation)
        super().__init__(observation_space, head.output_dim)
        self.entries = entries
        self.quotients = quotients
        self.encoder = encoder
        self.pair_encoder = pair_encoder
        self.context = context
        self.head = head

    def forward(self, observations: Tensor | Mapping[str, Tensor]) -> Tensor:
        """From observations, points float [N, P, D], to features [N, features_dim]."""
        rows = rows_of(points_of(observations), pairs=True)
        encoded = self.encoder(self.entries.rows(rows, observations))
        pairs = self._pair_inputs(axis_sums(rows.pairs), self.quotients)
        around = rows.pool_pairs(self.pair_encoder(pairs))
        pooled = [
            rows.pool_points(self.context(torch.cat([encoded, around], 1))),
            rows.count[:, None].to(around.dtype).log1p(),  # the mean hides how many there are
        ]
        return self.head(self.entries.with_others(pooled, observations))

    @staticmethod
    def _pair_inputs(sums: Tensor, quotients: bool) -> Tensor:
        """What the network is told of pairs, [Q, F] of their `axis_sums` [Q, S]."""
        features = pair_features(sums)
        return torch.cat([features, quotient_features(sums)], 1) if quotients else features
