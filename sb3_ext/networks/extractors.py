"""Features extractors by name: one flattens, the others use the points of a game.

Pass one as ``policy_kwargs=dict(features_extractor_class=..., features_extractor_kwargs=...)`` to
any SB3 algorithm.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import torch
from gymnasium import spaces
from stable_baselines3.common import torch_layers
from stable_baselines3.common.preprocessing import get_flattened_obs_dim
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from sb3_ext.config.checks import Registry, check_flag
from sb3_ext.config.effects import known_class
from sb3_ext.networks.mlp import Mlp, build_mlp, expand_net_arch
from sb3_ext.networks.rows import (
    Observations,
    Rows,
    axis_sums,
    canonical_points,
    pair_features,
    point_features,
    points_of,
    pool,
    quotients,
)

EXTRACTORS: Registry[type[BaseFeaturesExtractor]] = Registry(
    "features extractor", BaseFeaturesExtractor
)
# What SB3's policies take when none is named.
EXTRACTORS.register("sb3.CombinedExtractor", torch_layers.CombinedExtractor)
EXTRACTORS.register("sb3.FlattenExtractor", torch_layers.FlattenExtractor)
EXTRACTORS.register("sb3.NatureCNN", torch_layers.NatureCNN)
EXTRACTORS.later(any_size="sb3_ext.networks.any_size:AnySizeExtractor")


def extractor_class(given: str | type[BaseFeaturesExtractor]) -> type[BaseFeaturesExtractor]:
    """The class of a registered name or of a path such as ``module.Class``; a class stays.

    Raises:
        TypeError, ValueError: there is none, or it may not be imported.
    """
    if isinstance(given, str) and given not in EXTRACTORS:
        with suppress(ValueError):  # of a package whose classes files may name
            if issubclass(found := known_class(given), BaseFeaturesExtractor):
                return found
        given = re.sub(r"\.(\w+)$", r":\1", given)
    return EXTRACTORS.resolve(given)


def flatten_entries(observation: Observations, keys: Sequence[str]) -> Tensor:
    """One tensor [N, ...], or entries of a mapping of such in the order of `keys`, as rows.

    Floats [N, total size], of the observation's own type if it has one.
    """
    parts = [observation] if isinstance(observation, Tensor) else [observation[k] for k in keys]
    flat = [part.flatten(1) for part in parts]
    flat = [part if part.is_floating_point() else part.float() for part in flat]
    return flat[0] if len(flat) == 1 else torch.cat(flat, 1)


@EXTRACTORS.register("flatten")
class FlattenExtractor(BaseFeaturesExtractor):
    """The observation as one vector; the entries of a Dict space in alphabetical order."""

    def __init__(self, observation_space: spaces.Space[Any]) -> None:
        super().__init__(observation_space, int(get_flattened_obs_dim(observation_space)))
        self.keys = tuple(sorted(getattr(observation_space, "spaces", ())))

    def forward(self, observations: Observations) -> Tensor:
        """From observations [N, ...] to features [N, features_dim]."""
        return flatten_entries(observations, self.keys)


class PointExtractor(BaseFeaturesExtractor):
    """Where an observation has its points, and what else it holds.

    There are at most `most` points of D = `dimension` axes. The `others`, in alphabetical order,
    make `other_size` numbers; those `beside` have D values, which describe the axes.
    """

    def __init__(self, name: str, space: spaces.Space[Any]) -> None:
        entries = dict(space.spaces) if isinstance(space, spaces.Dict) else {"points": space}
        points = entries.pop("points", None)
        if not isinstance(points, spaces.Box) or len(points.shape) != 2:
            raise ValueError(f"{name} needs a Box 'points' [P, D], got {space}")
        super().__init__(space, 1)  # the number of features is set when it is known
        self.most, self.dimension = points.shape
        self.others = tuple(sorted(entries))
        self.beside = tuple(key for key in self.others if entries[key].shape == points.shape[1:])
        self.other_size = sum(get_flattened_obs_dim(each) for each in entries.values())

    def _with_others(self, features: Sequence[Tensor], observations: Any) -> Tensor:
        """Features [N, ...] of the points one after another, then the other entries."""
        others = [flatten_entries(observations, self.others)] if self.others else []
        return torch.cat([*features, *others], 1)


class PoolingExtractor(PointExtractor):
    """Encodes points one by one, and has a head after pooling over them."""

    def __init__(
        self, name: str, space: spaces.Space[Any], point_net: Sequence[Any], activation: Any
    ) -> None:
        super().__init__(name, space)
        self.activation = activation
        self.encoder = self._net("point_net", self.dimension * (3 + len(self.beside)), point_net)

    def _net(self, name: str, input_dim: int, net_arch: Sequence[Any]) -> Mlp:
        for position, item in expand_net_arch(net_arch):
            if item == "b" or (isinstance(item, str) and item.startswith("r")):
                raise ValueError(
                    f"{name}: {position} {item!r} has BatchNorm, whose statistics would depend on "
                    "the padding; use 'ln' here, or BatchNorm in head_net"
                )
        return build_mlp(input_dim, net_arch, activation=self.activation)

    def _add_head(self, pooled_size: int, head_net: Sequence[Any]) -> None:
        size = pooled_size + 1 + self.other_size
        self.head = build_mlp(size, head_net, activation=self.activation)
        self._features_dim = self.head.output_dim

    def _encode(self, rows: Rows, observations: Any) -> Tensor:
        """Every point encoded by itself, [R, F]."""
        features = [point_features(rows.points)]
        if self.beside:
            features.append(rows.spread(flatten_entries(observations, self.beside)))
        return self.encoder(torch.cat(features, 1))  # type: ignore[no-any-return]

    def _finish(self, pooled: Tensor, rows: Rows, observations: Any) -> Tensor:
        count = rows.count[:, None].to(pooled.dtype).log1p()  # the mean hides how many there are
        return self.head(self._with_others([pooled, count], observations))  # type: ignore[no-any-return]


@EXTRACTORS.register("ordered_points")
class OrderedPointsExtractor(PointExtractor):
    """One vector with the features of every row, as observed and shifted to the axes.

    It has no weights; the layers of ``net_arch`` follow. It costs a fraction of ``point_set`` and
    keeps what that one hides: the order of rows, which some players use to break ties, and the
    position of the set. Use it to exploit one given player.

    Each row gives x as observed, the `point_features` of x after the translation of the set to
    every x_i = 0 with largest coordinate 1, and whether there is a point; an absent row gives
    zeros. Other entries of the observation (``coords``) follow.

    Args:
        observation_space: a Box [P, D] of points, or a Dict with such an entry ``points``.

    Raises:
        ValueError: the space has no points.
    """

    def __init__(self, observation_space: spaces.Space[Any]) -> None:
        super().__init__("ordered_points", observation_space)
        self._features_dim = self.most * (4 * self.dimension + 1) + self.other_size

    def forward(self, observations: Observations) -> Tensor:
        """From observations, points float [N, P, D], to features [N, features_dim]."""
        points = points_of(observations)
        there = points[:, :, 0] >= 0
        moved = canonical_points(points, there)
        present = there[:, :, None].to(points.dtype)
        features = torch.cat([points * present, point_features(moved) * present, present], 2)
        return self._with_others([features.flatten(1)], observations)


@EXTRACTORS.register("point_set")
class PointSetExtractor(PoolingExtractor):
    """Encode every point, pool over the points, and repeat this with the first result.

    Each set is first shifted and scaled to its canonical position, which changes no game. Every
    point is encoded from `point_features`; the maximum and the mean over the points are added to
    each point; the points are encoded and pooled again, and ``head_net`` follows. Absent rows,
    those with a negative first entry, have no influence.

    On a CPU only the present rows pass through the networks (packed and pooled by compiled loops if
    numba is installed). Elsewhere, and under a compiler, all rows do, with absent ones masked, so
    that shapes are fixed. Both give the same features up to rounding.

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
        super().__init__("point_set", observation_space, point_net, activation)
        width = size = self.encoder.output_dim
        self.second = nn.ModuleDict()
        if len(context_net) > 0:
            context = self._net("context_net", width, context_net)
            self.second.update({"around": nn.Linear(2 * width, width), "context": context})
            size = context.output_dim
        self._add_head(2 * size, head_net)

    def forward(self, observations: Observations) -> Tensor:
        """From observations, points float [N, P, D], to features [N, features_dim]."""
        rows = Rows(points_of(observations))
        encoded = self._encode(rows, observations)
        pooled = pool(encoded, rows.groups)
        if self.second:
            # Added rather than concatenated: the large product is then one per game, not per row.
            around = rows.spread(self.second["around"](pooled))
            pooled = pool(self.second["context"](encoded + around), rows.groups)
        return self._finish(pooled, rows, observations)


@EXTRACTORS.register("point_pairs")
class PointPairsExtractor(PoolingExtractor):
    """Encode every point and every ordered pair of points, and pool twice.

    The set is brought into a canonical position. Every point is encoded from `point_features`,
    every ordered pair from `pair_features`. A point then gets the maximum over its pairs, and
    ``context_net`` encodes both together; the maximum and the mean over the points and the
    logarithm of their number go through ``head_net``. The order of the rows has no influence, nor
    have absent rows. The cost grows with the square of the number of points.

    Arguments and errors are those of `PointSetExtractor`. ``pair_net`` has the layers for each
    pair, ``context_net`` those for each point with its pairs; ``quotients`` adds
    `quotient_features`.
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
        super().__init__("point_pairs", observation_space, point_net, activation)
        self.quotients = check_flag("quotients", quotients)
        no_pair = torch.zeros(0, self.dimension)
        self.pair_encoder = self._net("pair_net", self._of_pairs(no_pair).shape[1], pair_net)
        size = self.encoder.output_dim + self.pair_encoder.output_dim
        self.context = self._net("context_net", size, context_net)
        self._add_head(2 * self.context.output_dim, head_net)

    def forward(self, observations: Observations) -> Tensor:
        """From observations, points float [N, P, D], to features [N, features_dim]."""
        rows = Rows(points_of(observations))
        first, second, groups = rows.pairs()
        pairs = self.pair_encoder(self._of_pairs(rows.points[first] - rows.points[second]))
        around = pool(pairs, groups, mean=False)
        context = self.context(torch.cat([self._encode(rows, observations), around], 1))
        return self._finish(pool(context, rows.groups), rows, observations)

    def _of_pairs(self, differences: Tensor) -> Tensor:
        """What the network is told of pairs, [Q, F] of one point minus another [Q, D]."""
        sums = axis_sums(differences)
        pairs = pair_features(sums)
        return torch.cat([pairs, quotients(sums)], 1) if self.quotients else pairs
