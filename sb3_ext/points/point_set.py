"""A features extractor for sets of points: the order of the rows and the padding do not matter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from gymnasium import spaces
from stable_baselines3.common.preprocessing import get_flattened_obs_dim
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from sb3_ext.networks.extractors import EXTRACTORS, flatten_entries
from sb3_ext.networks.mlp import build_mlp
from sb3_ext.points.point_inputs import (
    canonical_points,
    point_features,
    points_of,
    refuse_batch_norm,
    split_point_space,
)
from sb3_ext.points.point_rows import DenseRows, PackedRows, shapes_are_fixed

__all__ = ["PointSetExtractor"]


@EXTRACTORS.register("point_set")
class PointSetExtractor(BaseFeaturesExtractor):
    """Encodes every point by itself, pools over the points, and once more knowing the first result.

    First the set is brought into a canonical position, then every point is encoded from
    ``point_features``, and the maximum and the mean over the points are taken. What they say is
    added to each point, the points are encoded and pooled again, and ``head_net`` follows. Rows
    with a negative first entry are absent; how many there are has no influence.

    On a CPU only the rows that are present pass through the networks; elsewhere, and under a
    compiler, all do and the absent ones are masked, which keeps every shape fixed. Both give the
    same features up to rounding.

    Args:
        observation_space: a Box [P, D] of points, or a Dict with such an entry ``points``. Other
            entries (``coords``) join after the pooling, in alphabetical order, and those with D
            values, which describe the axes, also each point.
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
        points, others = split_point_space("point_set", observation_space)
        dimension = points.shape[1]
        refuse_batch_norm("point_net", point_net)
        refuse_batch_norm("context_net", context_net)
        beside = [key for key, space in others.items() if space.shape == (dimension,)]
        beside_size = dimension * len(beside)
        encoder = build_mlp(3 * dimension + beside_size, point_net, activation=activation)
        width = encoder.output_dim
        second: dict[str, nn.Module] = {}
        pooled_size = 2 * width
        if len(context_net) > 0:
            context = build_mlp(width, context_net, activation=activation)
            second = {"around": nn.Linear(2 * width, width), "context": context}
            pooled_size = 2 * context.output_dim
        other_size = sum(get_flattened_obs_dim(space) for space in others.values())
        head = build_mlp(pooled_size + 1 + other_size, head_net, activation=activation)
        super().__init__(observation_space, head.output_dim)
        self.other_keys = tuple(others)
        self.beside_keys = tuple(beside)
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
        inputs = [point_features(rows.points.clamp(min=0.0))]
        if self.beside_keys:
            inputs.append(rows.spread(flatten_entries(observations, self.beside_keys)))
        encoded = self.encoder(torch.cat(inputs, 1) if len(inputs) > 1 else inputs[0])
        pooled = [rows.pool_points(encoded)]
        if self.second:
            # Added rather than concatenated: the large product is then one per game, not per row.
            around = self.second["around"](pooled[0])
            pooled = [rows.pool_points(self.second["context"](encoded + rows.spread(around)))]
        # The mean hides how many points there are.
        pooled.append(rows.count[:, None].to(points.dtype).log1p())
        if self.other_keys:
            pooled.append(flatten_entries(observations, self.other_keys))
        features: Tensor = self.head(torch.cat(pooled, 1))
        return features
