"""A features extractor for sets of points: the order of the rows and the padding do not matter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from sb3_ext.networks.extractors import EXTRACTORS
from sb3_ext.networks.mlp import build_mlp
from sb3_ext.points.point_inputs import (
    PointEntries,
    canonical_points,
    points_of,
    refuse_batch_norm,
)
from sb3_ext.points.point_rows import DenseRows, PackedRows, shapes_are_fixed

__all__ = ["PointSetExtractor"]


@EXTRACTORS.register("point_set")
class PointSetExtractor(BaseFeaturesExtractor):
    """Encodes every point by itself, pools over the points, and once more knowing the first result.

    Every point is encoded from ``point_features``, and the maximum and the mean over the points are
    taken. What they say is added to each point, the points are encoded and pooled again, and
    ``head_net`` follows. Rows with a negative first entry are absent, which has no influence.

    On a CPU only the rows that are present pass through the networks; elsewhere, and under a
    compiler, all do and the absent ones are masked, which keeps every shape fixed. Both give the
    same features up to rounding.

    Args:
        observation_space: a Box [P, D] of points, or a Dict with such an entry ``points``. Other
            entries (``coords``) join after the pooling, those with D values also each point.
        point_net: layers for each point, in the language of ``build_mlp``.
        context_net: layers for each point in the second round; empty leaves that round out.
        head_net: layers after the pooling; with none the pooled points are the features.
        activation: name or class of the activation everywhere.
        canonical: whether each set is first translated to touch every x_i = 0 and scaled to a
            largest coordinate of 1. The moves and their number do not depend on position and
            scale, so the network need not learn that: without it, a host trained in the same way
            reaches a rho of 0.14 against ``choose_first`` instead of 0.178. Turn it off for a game
            in which the position matters; coordinates are then expected in 0..1.

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
        canonical: bool = True,
    ) -> None:
        entries = PointEntries("point_set", observation_space)
        refuse_batch_norm("point_net", point_net)
        refuse_batch_norm("context_net", context_net)
        encoder = build_mlp(entries.row_size, point_net, activation=activation)
        width = encoder.output_dim
        second: dict[str, nn.Module] = {}
        pooled_size = 2 * width
        if len(context_net) > 0:
            context = build_mlp(width, context_net, activation=activation)
            second = {"around": nn.Linear(2 * width, width), "context": context}
            pooled_size = 2 * context.output_dim
        head = build_mlp(pooled_size + 1 + entries.other_size, head_net, activation=activation)
        super().__init__(observation_space, head.output_dim)
        self.entries = entries
        self.canonical = canonical
        self.encoder = encoder
        self.second = nn.ModuleDict(second)
        self.head = head

    def forward(self, observations: Tensor | Mapping[str, Tensor]) -> Tensor:
        """From observations, points float [N, P, D], to features [N, features_dim]."""
        points, present = points_of(observations)
        if self.canonical:
            points = canonical_points(points, present)
        rows = (DenseRows if shapes_are_fixed(points) else PackedRows)(points, present)
        encoded = self.encoder(self.entries.rows(rows, observations))
        pooled = rows.pool_points(encoded)
        if self.second:
            # Added rather than concatenated: the large product is then one per game, not per row.
            around = self.second["around"](pooled)
            pooled = rows.pool_points(self.second["context"](encoded + rows.spread(around)))
        count = rows.count[:, None].to(points.dtype).log1p()  # the mean hides how many there are
        features: Tensor = self.head(self.entries.with_others([pooled, count], observations))
        return features
