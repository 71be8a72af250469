"""Treat a game and its mirror image as one in a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from sb3_ext.networks.rows import shapes_are_fixed


def rows_in_order(points: Tensor) -> Tensor:
    """Rows of [N, P, D] in descending lexicographic order, where absent ones (-1) are the last."""
    for axis in reversed(range(points.shape[2])):
        order = points[:, :, axis].argsort(dim=1, descending=True, stable=True)
        points = points.gather(1, order[:, :, None].expand_as(points))
    return points


@dataclass(frozen=True)
class Mirror:
    """A renaming of the axes that undoes itself, and what it does to the actions.

    Attributes:
        axes: the new axis j is the old axis ``axes[j]``.
        actions: the new action k is the old action ``actions[k]``.
    """

    axes: tuple[int, ...]
    actions: tuple[int, ...]

    def turned(self, points: Tensor) -> Tensor:
        """Bool [N]: which of the games [N, P, D] are to be renamed.

        Those in which the first axis that gets another name has a smaller sum over the points than
        the axis that it changes with. Exactly one of two mirror images, if the sums differ.
        """
        first = next(axis for axis, old in enumerate(self.axes) if axis != old)
        present = points[:, :, 0] >= 0
        lead = points[:, :, first] - points[:, :, self.axes[first]]
        return lead.masked_fill(~present, 0.0).sum(1) < 0

    def images(self, points: Tensor, turned: Tensor) -> Tensor:
        """The games, those of ``turned`` renamed, with their rows in order again."""
        axes = list(self.axes)
        if not shapes_are_fixed(points):
            rows = turned.nonzero()[:, 0]  # looking at values costs nothing here
            if not len(rows):
                return points
            return points.index_copy(0, rows, rows_in_order(points[rows][:, :, axes]))
        return torch.where(turned[:, None, None], rows_in_order(points[:, :, axes]), points)

    def values(self, values: Tensor, turned: Tensor) -> Tensor:
        """Action values [N, A] of `images`, given back to the actions of the games themselves."""
        return torch.where(turned[:, None], values[:, list(self.actions)], values)


def parse_mirror(value: Mapping[str, Sequence[int]], dimension: int, num_actions: int) -> Mirror:
    """A mirror from plain data ``{axes: [...], actions: [...]}``, D axes and A actions.

    Raises:
        ValueError: another form, or permutations that do not undo themselves.
    """
    if set(value) != {"axes", "actions"}:
        raise ValueError(f"mirror must be {{axes: [...], actions: [...]}}, got {value!r}")
    axes, actions = value["axes"], value["actions"]
    for name, order, size in (("axes", axes, dimension), ("actions", actions, num_actions)):
        identity = list(range(size))
        undone = sorted(order) == identity and [order[old] for old in order] == identity
        if not undone or list(axes) == identity:
            raise ValueError(f"mirror: {name} must exchange pairs of 0..{size - 1}, got {order!r}")
    return Mirror(tuple(axes), tuple(actions))
