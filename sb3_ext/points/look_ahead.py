"""A network that looks at the position after each of the game's moves.

Which move is good depends on what it leaves, and what it leaves follows from the rule. So the
points that are left are worked out, brought into a canonical position and order of axes (the
number of moves that a position takes does not depend on either), and encoded by networks that all
moves share.

Letters: N games, R rows of points, Q rows of pairs, D axes, M moves, F features, A sets of axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from sb3_ext.networks.mlp import build_mlp
from sb3_ext.points.point_moves import (
    EQUAL,
    after_moves,
    axis_sums,
    covered_after,
    moves,
    pair_features,
)
from sb3_ext.points.point_rows import DenseRows, GroupedRows
from sb3_ext.points.point_set import group_maximum, point_features

__all__ = ["SET_FEATURES", "LookAhead"]

SET_FEATURES = 8
"""Numbers about each set of axes."""

_STEPS = 1e4
"""Sums of coordinates that differ by less than one in so many count as equal."""


class LookAhead(nn.Module):
    """Encodes what is left after each move, and compares the answers to each set of axes.

    After a move every point that is left is encoded with the maximum over its pairs, and the
    maximum over the points describes the move. What the networks make of an unfavourable answer can
    be told from the others by the maximum over the answers to a set.

    Args:
        dimension: number of axes D, 2 to `MAX_MOVE_DIMENSION`.
        net: layers of the encoders, in the language of ``build_mlp``.
        activation: name or class of their activation.

    Attributes:
        num_moves: M.
        moves_dim: size of the first result's rows, M (F + 1).
        sets_dim: size of the second one's, A times `SET_FEATURES`.
    """

    def __init__(
        self, dimension: int, net: Sequence[Any], activation: str | type[nn.Module]
    ) -> None:
        super().__init__()
        sets = moves(dimension, torch.device("cpu")).sets
        self.num_moves = len(sets)
        self._answers = torch.unique_consecutive(sets, return_counts=True)[1].tolist()
        num_sums = 2**dimension - 1
        self.point = build_mlp(3 * dimension, net, activation=activation)
        self.pair = build_mlp(4 * num_sums, net, activation=activation)
        self.context = build_mlp(
            self.point.output_dim + self.pair.output_dim, net, activation=activation
        )
        width = self.context.output_dim
        self.answer = build_mlp(width + 1, [width, SET_FEATURES], activation=activation)
        self.moves_dim = self.num_moves * (width + 1)
        self.sets_dim = len(self._answers) * SET_FEATURES

    def covered(self, rows: GroupedRows | DenseRows, sums: Tensor) -> Tensor:
        """Which points are covered after which moves, float [R, M].

        Args:
            rows: the points.
            sums: `axis_sums` of the pairs.
        """
        return rows.pool_pairs(covered_after(sums, rows.points.shape[1]))

    def forward(self, rows: GroupedRows | DenseRows, covered: Tensor) -> tuple[Tensor, Tensor]:
        """What becomes of the positions.

        Args:
            rows: the points, none below 0.
            covered: from `covered`.

        Returns:
            [N, M (F + 1)]: of each move, and whether the game is over; [N, A `SET_FEATURES`]: of
            each set of axes.
        """
        after = after_moves(rows.points)
        # Covered points are nowhere least, so the shift is that of the others.
        after = after + rows.spread(rows.highest(-after.flatten(1))).view_as(after)
        largest = rows.highest(after.amax(2) * (1.0 - covered))
        over = largest < EQUAL  # the points that are left coincide
        after = after / rows.spread(largest.clamp(min=EQUAL))[:, :, None]
        after = after.masked_fill(after < EQUAL, 0.0)
        left = (covered == 0) & ~rows.spread(over) & rows.exists[:, None]
        totals = rows.total((after * left[:, :, None]).flatten(1)).unflatten(1, after.shape[1:])
        # Rounded, for a sum must not depend on the order of the points.
        axes = (totals * _STEPS).round().argsort(dim=2, stable=True)
        after = after.gather(2, rows.spread(axes.flatten(1)).view_as(after))
        encode = self._encode_left if isinstance(rows, GroupedRows) else self._encode_all
        of_moves = torch.cat([encode(rows, after, left), over.to(after.dtype)[:, :, None]], 2)
        answers = self.answer(of_moves).split(self._answers, 1)
        return of_moves.flatten(1), torch.cat([each.amax(1) for each in answers], 1)

    def _compare(self, difference: Tensor) -> Tensor:
        sums = axis_sums(difference)
        own = sums / sums.abs().amax(-1, keepdim=True).clamp(min=EQUAL)
        features: Tensor = self.pair(torch.cat([pair_features(sums), own], -1))
        return features

    def _encode_left(self, rows: Any, after: Tensor, left: Tensor) -> Tensor:
        """[N, M, F], from the points that are left alone; 0 where the game is over.

        Args:
            rows: grouped.
            after: [R, M, D].
            left: bool [R, M].
        """
        games, num_moves = len(rows.count), left.shape[1]
        row, move = left.nonzero(as_tuple=True)
        place = left.flatten().cumsum(0) - 1
        pair, pair_move = (left[rows.own] & left[rows.other]).nonzero(as_tuple=True)
        own, other = rows.own[pair], rows.other[pair]
        compared = self._compare(after[own, pair_move] - after[other, pair_move])
        around = group_maximum(compared, place[own * num_moves + pair_move], len(row))
        points = self.point(point_features(after[row, move]))
        encoded = self.context(torch.cat([points, around], 1))
        pooled = group_maximum(encoded, rows.game[row] * num_moves + move, games * num_moves)
        return pooled.unflatten(0, (games, num_moves))

    def _encode_all(self, rows: Any, after: Tensor, left: Tensor) -> Tensor:
        """The same with fixed shapes."""
        compared = self._compare(after[rows.own] - after[rows.other])
        both = left[rows.own] & left[rows.other] & (rows.own != rows.other)[:, None]
        around = _masked_maximum(compared, both, rows.present.shape[1])
        encoded = self.context(torch.cat([self.point(point_features(after)), around], 2))
        return _masked_maximum(encoded, left, rows.present.shape[1])


def _masked_maximum(x: Tensor, present: Tensor, group: int) -> Tensor:
    """Maximum [L / group, M, F] of [L, M, F] over what is present [L, M], 0 without any."""
    shape = (x.shape[0] // max(group, 1), group)
    absent = ~present.unflatten(0, shape)[..., None]
    highest = x.unflatten(0, shape).masked_fill(absent, torch.finfo(x.dtype).min).amax(1)
    return highest.masked_fill(absent.all(1), 0.0)
