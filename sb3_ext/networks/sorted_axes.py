"""Treat games as one in a network that differ by the names of their axes alone."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from resgym.game.spec import host_action_table


class SortedAxes(nn.Module):
    """Renames the axes so that those with the larger sums over the points come first.

    Sums are those of the set after its translation to every x_i = 0, as networks see it that pool
    over the points.

    Args:
        dimension: D.
        num_actions: A, the host's.

    Raises:
        ValueError: the actions are not the host's.
    """

    # They move to the device of the network, and are not trained.
    _bits: Tensor
    _sets: Tensor
    _action_of: Tensor

    def __init__(self, dimension: int, num_actions: int) -> None:
        sets = host_action_table(dimension)
        if len(sets) != num_actions:
            raise ValueError(f"sort_axes needs the host's {len(sets)} actions, got {num_actions}")
        super().__init__()
        bits = 2 ** torch.arange(dimension)
        action_of = torch.zeros(2**dimension, dtype=torch.int64)
        action_of[sets.long() @ bits] = torch.arange(num_actions)
        tables = {"_bits": bits, "_sets": sets.long(), "_action_of": action_of}
        for name, table in tables.items():
            self.register_buffer(name, table, persistent=False)

    def forward(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Renames the axes of N games.

        Args:
            points: float [N, P, D], absent rows negative.

        Returns:
            The games with their axes renamed, and int64 [N, A]: what each action is called there.
        """
        absent = points[:, :, 0] < 0
        seen = points - points.masked_fill(absent[:, :, None], torch.inf).amin(1, keepdim=True)
        ahead = torch.stack([axis - seen[:, :, 0] for axis in seen.unbind(2)])
        sums = ahead.masked_fill(absent, 0.0).sum(2).t()
        old = sums.argsort(dim=1, descending=True, stable=True)
        images = points.gather(2, old[:, None].expand_as(points))
        # The new axis j was old[j], so an action has the new axes j whose old ones are in its set.
        actions = self._action_of[(self._sets[:, old] * self._bits).sum(2)].t()
        return images, actions
