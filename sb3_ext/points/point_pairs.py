"""A features extractor that compares the points of a set two by two."""

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
from sb3_ext.points.look_ahead import LookAhead
from sb3_ext.points.point_moves import MAX_MOVE_DIMENSION, axis_sums, pair_features
from sb3_ext.points.point_rows import DenseRows, GroupedRows
from sb3_ext.points.point_set import (
    canonical_points,
    point_features,
    refuse_batch_norm,
    split_point_space,
)

__all__ = ["PointPairsExtractor"]


@EXTRACTORS.register("point_pairs")
class PointPairsExtractor(BaseFeaturesExtractor):
    """Encodes every point and every ordered pair of points, and pools twice.

    The set is brought into a canonical position (touching every x_i = 0, largest entry 1; the moves
    do not depend on position and scale). Every point is encoded from `point_features`, every
    ordered pair from `pair_features`. A point then gets the maximum over its pairs, and
    ``context_net`` encodes both together; the maximum and the mean over the points and the
    logarithm of their number go through ``head_net``. The order of the rows has no influence, nor
    have absent rows (negative first entry).

    With ``move_net`` the network also looks one move ahead: see `LookAhead`. What it says of the
    moves joins before ``head_net``, what it says of the sets of axes joins the features, and the
    encoding of a point is told which moves it survives.

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
        move_net: layers of `LookAhead`, in at most 6 axes; none by default.
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
        ahead = LookAhead(dimension, move_net, activation) if move_net else None
        context = build_mlp(
            encoder.output_dim + pair_encoder.output_dim + (ahead.num_moves if ahead else 0),
            context_net,
            activation=activation,
        )
        head = build_mlp(
            2 * context.output_dim + 1 + (ahead.moves_dim if ahead else 0) + other_size,
            head_net,
            activation=activation,
        )
        super().__init__(observation_space, head.output_dim + (ahead.sets_dim if ahead else 0))
        self.other_keys = tuple(others)
        self.beside_keys = tuple(beside)
        self.encoder = encoder
        self.pair_encoder = pair_encoder
        self.ahead = ahead
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
        rows = (DenseRows if fixed_shapes else GroupedRows)(points, present)

        inputs = [point_features(rows.points)]
        if self.beside_keys:
            inputs.append(rows.spread(flatten_entries(observations, self.beside_keys)))
        encoded = self.encoder(torch.cat(inputs, 1) if len(inputs) > 1 else inputs[0])
        sums = axis_sums(rows.pairs)
        around = [encoded, rows.pool_pairs(self.pair_encoder(pair_features(sums)))]
        of_moves, of_sets = [], []
        if self.ahead is not None:
            covered = self.ahead.covered(rows, sums)
            around.append(covered)
            found = self.ahead(rows, covered)
            of_moves, of_sets = [found[0]], [found[1]]
        pooled = [
            rows.pool_points(self.context(torch.cat(around, 1))),
            rows.count[:, None].to(points.dtype).log1p(),  # the mean hides how many there are
            *of_moves,
        ]
        if self.other_keys:
            pooled.append(flatten_entries(observations, self.other_keys))
        features: Tensor = self.head(torch.cat(pooled, 1))
        return torch.cat([features, *of_sets], 1) if of_sets else features
