"""A features extractor for sets of points: the order of the rows and the padding do not matter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from gymnasium import spaces
from stable_baselines3.common.preprocessing import get_flattened_obs_dim
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from sb3_ext.networks.extractors import EXTRACTORS, flatten_entries
from sb3_ext.networks.mlp import build_mlp, expand_net_arch

__all__ = [
    "PointSetExtractor",
    "canonical_points",
    "point_features",
    "refuse_batch_norm",
    "split_point_space",
]

# Coordinates lie in [0, 1]; below this part of the largest one, logarithms are cut off.
_SMALLEST = 1e-3


def point_features(points: Tensor) -> Tensor:
    """What a network is told about a point: x, log(x + 0.001) scaled to about 0..1, and x == 0.

    A move adds coordinates, so that after a few moves they lie many orders of magnitude apart;
    the logarithm keeps the small ones apart, and whether one is exactly 0 decides what it can do.

    Args:
        points: float [..., D], at least 0.

    Returns:
        float [..., 3 D].
    """
    logarithm = (points + _SMALLEST).log() / -math.log(_SMALLEST) + 1.0
    return torch.cat([points, logarithm, (points == 0).to(points.dtype)], -1)


def group_maximum(rows: Tensor, group: Tensor, groups: int) -> Tensor:
    """The maximum [G, F] over the rows of each group, 0 without any.

    Args:
        rows: float [R, F].
        group: int64 [R], of each row, 0 to G - 1.
        groups: their number G.
    """
    highest: Tensor = _GroupMaximum.apply(rows, group, groups)  # type: ignore[no-untyped-call]
    return highest


class _GroupMaximum(torch.autograd.Function):
    """Maximum over the rows of each group, 0 without any; rows that tie share the gradient.

    The same as ``scatter_reduce("amax")``, whose own gradient takes three times as long on a CPU
    and half of the time of a small network.
    """

    @staticmethod
    def forward(context: Any, rows: Tensor, game: Tensor, games: int) -> Tensor:
        zeros = rows.new_zeros(games, rows.shape[1])
        index = game[:, None].expand_as(rows)
        highest = zeros.scatter_reduce(0, index, rows, "amax", include_self=False)
        context.save_for_backward(rows, game, highest)
        return highest

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        rows, game, highest = context.saved_tensors
        winners = (rows == highest.index_select(0, game)).to(gradient.dtype)
        ties = torch.zeros_like(highest).index_add_(0, game, winners)
        return winners * (gradient / ties).index_select(0, game), None, None


class _DenseRows:
    """All rows, absent ones too: shapes depend on no data, as CUDA graphs and compilers need."""

    def __init__(self, present: Tensor) -> None:
        self.present = present
        self.count = present.sum(1)

    def take(self, x: Tensor) -> Tensor:
        """[N, P, F] to rows [R, F]."""
        return x.flatten(0, 1)

    def spread(self, x: Tensor) -> Tensor:
        """[N, F], one per game, to rows [R, F]."""
        games, size = self.present.shape
        return x[:, None].expand(games, size, x.shape[1]).flatten(0, 1)

    def pool(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Rows [R, F] to the maximum and the mean [N, F] over a game's points, 0 without any."""
        x = rows.view(*self.present.shape, rows.shape[1])
        absent = ~self.present[:, :, None]
        highest = x.masked_fill(absent, torch.finfo(x.dtype).min).amax(1)
        highest = highest.masked_fill((self.count == 0)[:, None], 0.0)
        total = x.masked_fill(absent, 0.0).sum(1)
        return highest, total / self.count.clamp(min=1)[:, None]


class _PackedRows:
    """Only the rows that are present: in play about one in seven, so the network costs less."""

    def __init__(self, present: Tensor) -> None:
        self.present = present
        self.count = present.sum(1)
        self.game, self.slot = present.nonzero(as_tuple=True)

    def take(self, x: Tensor) -> Tensor:
        return x[self.game, self.slot]

    def spread(self, x: Tensor) -> Tensor:
        return x.index_select(0, self.game)

    def pool(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        games = self.present.shape[0]
        highest = group_maximum(rows, self.game, games)
        total = rows.new_zeros(games, rows.shape[1]).index_add(0, self.game, rows)
        return highest, total / self.count.clamp(min=1)[:, None]


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
        points = observations if isinstance(observations, Tensor) else observations["points"]
        points = points if points.is_floating_point() else points.float()
        present = points[:, :, 0] >= 0
        fixed_shapes = points.device.type != "cpu" or torch.compiler.is_compiling()
        rows = _DenseRows(present) if fixed_shapes else _PackedRows(present)

        if self.canonical:
            points = canonical_points(points, present)
        # Absent rows become the origin, so that no logarithm of a negative number is taken.
        known = rows.take(points).clamp(min=0.0)
        inputs = [point_features(known)]
        if self.beside_keys:
            inputs.append(rows.spread(flatten_entries(observations, self.beside_keys)))
        encoded = self.encoder(torch.cat(inputs, -1) if len(inputs) > 1 else inputs[0])
        pooled = [*rows.pool(encoded)]
        if self.second:
            # Added rather than concatenated: the large product is then one per game, not per row.
            around = self.second["around"](torch.cat(pooled, 1))
            pooled = [*rows.pool(self.second["context"](encoded + rows.spread(around)))]
        # The mean hides how many points there are.
        pooled.append(rows.count[:, None].to(points.dtype).log1p())
        if self.other_keys:
            pooled.append(flatten_entries(observations, self.other_keys))
        features: Tensor = self.head(torch.cat(pooled, 1))
        return features


def canonical_points(points: Tensor, present: Tensor) -> Tensor:
    """Moves and scales each set [N, P, D] so that it touches every x_i = 0, with largest entry 1.

    The game is the same for a set that is translated or scaled, so nothing is lost by it.
    """
    absent = ~present[:, :, None]
    shifted = points - points.masked_fill(absent, torch.inf).amin(1, keepdim=True)
    shifted = shifted.masked_fill(absent, 0.0)
    largest = shifted.amax((1, 2), keepdim=True)
    return shifted / torch.where(largest > 0, largest, 1.0)


def split_point_space(
    extractor: str, space: spaces.Space[Any]
) -> tuple[spaces.Box, dict[str, spaces.Space[Any]]]:
    """The space of the points, and the other entries in alphabetical order.

    Raises:
        ValueError: there are no points; the message names the extractor.
    """
    others: dict[str, spaces.Space[Any]] = {}
    points: spaces.Space[Any] | None = space
    if isinstance(space, spaces.Dict):
        others = {key: space[key] for key in sorted(space.spaces) if key != "points"}
        points = space.spaces.get("points")
    if not isinstance(points, spaces.Box) or len(points.shape) != 2:
        raise ValueError(
            f"{extractor} needs a Box of shape (points, dimension), or a Dict with such an entry "
            f"'points', got {space}"
        )
    return points, others


def refuse_batch_norm(name: str, net_arch: Sequence[Any]) -> None:
    """Raises ValueError if a net for single points has BatchNorm; ``name`` is the argument's."""
    for position, item in expand_net_arch(net_arch):
        if item == "b" or (isinstance(item, str) and item.startswith("r")):
            raise ValueError(
                f"{name}: {position} {item!r} has BatchNorm, whose statistics would depend on the "
                "padding; use 'ln' here, or BatchNorm in head_net"
            )
