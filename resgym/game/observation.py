"""What a player sees: the points as floats, in an order that does not depend on history.

Layout of ``points`` [N, P, D]: row p, column j is coordinate j of the p-th point in descending
lexicographic order, divided by the largest coordinate of the position (1 if that is 0). Absent rows
are -1. The state itself stays exact; only this copy is rounded.
"""

from __future__ import annotations

import torch
from torch import Tensor

from resgym.game.dominance import used_rows
from resgym.game.state import GameState

__all__ = ["observe_points"]


def observe_points(state: GameState, scale: bool = True) -> Tensor:
    """A new tensor float32 [N, P, D] in [0, 1], or with 0..2^59 unscaled; absent rows are -1."""
    if not scale:
        return state.points.to(torch.float32)
    observed = torch.full(state.points.shape, -1.0, device=state.device)
    width = used_rows(state.count, state.points.shape[1])
    points = state.points[:, :width]
    # Divided as float64 and rounded once more, which IEEE arithmetic fixes on every device.
    largest = points.amax((1, 2), keepdim=True).clamp(min=1).to(torch.float64)
    observed[:, :width] = torch.where(points < 0, -1.0, points.to(torch.float64) / largest)
    return observed
