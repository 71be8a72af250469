"""A features extractor that reads the points in their order: cheap, and nothing is thrown away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor

from sb3_ext.networks.extractors import EXTRACTORS
from sb3_ext.points.point_inputs import PointEntries, canonical_points, point_features, points_of

__all__ = ["OrderedPointsExtractor"]


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
