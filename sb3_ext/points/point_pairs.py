"""A features extractor that compares the points of a set two by two."""

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
    canonical_points,
    pair_features,
    points_of,
    refuse_batch_norm,
)
from sb3_ext.points.point_rows import DenseRows, GroupedRows, shapes_are_fixed

__all__ = ["PointPairsExtractor"]


@EXTRACTORS.register("point_pairs")
class PointPairsExtractor(BaseFeaturesExtractor):
    """Encodes every point and every ordered pair of points, and pools twice.

    The set is brought into a canonical position. Every point is encoded from `point_features`,
    every ordered pair from `pair_features`. A point then gets the maximum over its pairs, and
    ``context_net`` encodes both together; the maximum and the mean over the points and the
    logarithm of their number go through ``head_net``. The order of the rows has no influence, nor
    have absent rows. The cost grows with the square of the number of points; what passes through
    the networks is as in `PointSetExtractor`.

    Args:
        observation_space: a Box [P, D] of points, or a Dict with such an entry ``points``. Other
            entries (``coords``) join after the pooling, those with D values also each point.
        point_net: layers for each point, in the language of ``build_mlp``.
        pair_net: layers for each pair.
        context_net: layers for each point with its pairs.
        head_net: layers after the pooling; with none the pooled points are the features.
        activation: name or class of the activation everywhere.

    Raises:
        ValueError: the space has no points, a net is malformed, or one before the head contains
            BatchNorm, whose statistics would depend on the padding.
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        point_net: Sequence[Any] = (64,),
        pair_net: Sequence[Any] = (64, 64),
        context_net: Sequence[Any] = (128, 128),
        head_net: Sequence[Any] = (128,),
        activation: str | type[nn.Module] = "relu",
    ) -> None:
        entries = PointEntries("point_pairs", observation_space)
        refuse_batch_norm("point_net", point_net)
        refuse_batch_norm("pair_net", pair_net)
        refuse_batch_norm("context_net", context_net)
        pair_size = 3 * (2**entries.dimension - 1)
        encoder = build_mlp(entries.row_size, point_net, activation=activation)
        pair_encoder = build_mlp(pair_size, pair_net, activation=activation)
        context = build_mlp(
            encoder.output_dim + pair_encoder.output_dim, context_net, activation=activation
        )
        pooled_size = 2 * context.output_dim + 1
        head = build_mlp(pooled_size + entries.other_size, head_net, activation=activation)
        super().__init__(observation_space, head.output_dim)
        self.entries = entries
        self.encoder = encoder
        self.pair_encoder = pair_encoder
        self.context = context
        self.head = head

    def forward(self, observations: Tensor | Mapping[str, Tensor]) -> Tensor:
        """From observations, points float [N, P, D], to features [N, features_dim]."""
        points, present = points_of(observations)
        points = canonical_points(points, present)
        fixed = shapes_are_fixed(points) or len(points) == 0  # nothing to group
        rows = (DenseRows if fixed else GroupedRows)(points, present)
        encoded = self.encoder(self.entries.rows(rows, observations))
        around = rows.pool_pairs(self.pair_encoder(pair_features(axis_sums(rows.pairs))))
        pooled = [
            rows.pool_points(self.context(torch.cat([encoded, around], 1))),
            rows.count[:, None].to(points.dtype).log1p(),  # the mean hides how many there are
        ]
        features: Tensor = self.head(self.entries.with_others(pooled, observations))
        return features
