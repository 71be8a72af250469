"""Treat games as one in a network that differ by the names of their axes alone."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from resgym.game.spec import host_action_table


def rows_in_order(points: Tensor) -> Tensor:
    """Rows of [N, P, D] in descending lexicographic order, where absent ones (-1) are the last."""
    for axis in reversed(range(points.shape[2])):
        order = points[:, :, axis].argsort(dim=1, descending=True, stable=True)
        points = points.gather(1, order[:, :, None].expand_as(points))
    return points


class SortedAxes(nn.Module):
    """Renames some axes so that those with the larger sums over the points come first.

    Args:
        axes: at least two of the D axes, in ascending order. All of them fit where the other player
            does not tell axes apart; two of them make a game and its mirror image one.
        dimension: D.
        num_actions: A, the host's.
        pooled: whether the network sees sets of points up to a translation, as those that pool over
            points do. Else sums are those of the points as observed, and rows are brought into
            order again.

    Raises:
        ValueError: other axes, or the actions are not the host's.
    """

    # They move to the device of the network, and are not trained.
    _axes: Tensor
    _bits: Tensor
    _sets: Tensor
    _action_of: Tensor

    def __init__(self, axes: Sequence[int], dimension: int, num_actions: int, pooled: bool) -> None:
        sets = host_action_table(dimension)
        if len(axes) < 2 or list(axes) != sorted({*axes} & {*range(dimension)}):
            raise ValueError(
                f"sort_axes must be at least two of the axes 0..{dimension - 1} in ascending order,"
                f" got {axes!r}"
            )
        if len(sets) != num_actions:
            raise ValueError(f"sort_axes needs the host's {len(sets)} actions, got {num_actions}")
        super().__init__()
        self.axes, self.pooled = list(axes), pooled
        bits = 2 ** torch.arange(dimension)
        action_of = torch.zeros(2**dimension, dtype=torch.int64)
        action_of[sets.long() @ bits] = torch.arange(num_actions)
        tables = {"_axes": torch.tensor(axes), "_bits": bits, "_sets": sets.long()}
        for name, table in {**tables, "_action_of": action_of}.items():
            self.register_buffer(name, table, persistent=False)

    def forward(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Renames the axes of N games.

        Args:
            points: float [N, P, D], absent rows negative.

        Returns:
            The games with their axes renamed, and int64 [N, A]: what each action is called there.
        """
        absent = points[:, :, 0] < 0
        seen = points
        if self.pooled:
            seen = points - points.masked_fill(absent[:, :, None], torch.inf).amin(1, keepdim=True)
        first = seen[:, :, self.axes[0]]
        ahead = torch.stack([seen[:, :, axis] - first for axis in self.axes])
        sums = ahead.masked_fill(absent, 0.0).sum(2).t()
        same = torch.arange(points.shape[2], device=points.device)
        old = same.repeat(len(points), 1)
        old[:, self._axes] = self._axes[sums.argsort(dim=1, descending=True, stable=True)]
        images = points.gather(2, old[:, None].expand_as(points))
        # The new axis j was old[j], so an action has the new axes j whose old ones are in its set.
        actions = self._action_of[(self._sets[:, old] * self._bits).sum(2)].t()
        if not self.pooled:
            renamed = (old != same).any(1)[:, None, None]
            images = torch.where(renamed, rows_in_order(images), images)
        return images, actions
