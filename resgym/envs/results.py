"""How results are handed out: which arrays, which form of observation, what the info holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from gymnasium.spaces.utils import flatten_space
from torch import Tensor

from resgym.game.spec import check_choice
from resgym.game.stepping import Seat, StepPlan
from resgym.game.variants import rule_of


@dataclass(frozen=True)
class ResultForm:
    """What the caller of an environment gets; the game is the same.

    Attributes:
        output: ``torch`` (tensors on the environment's device) or ``numpy``: as Gymnasium's own
            vector environments, rewards float64 and a mask ``_key`` for each key of the info.
        observation: ``points``, or ``flat``: one row of numbers a game, in the order of
            `gymnasium.spaces.flatten`.
        episode_statistics: whether the info has ``episode`` when games end.
        full_info: whether the info of every reset and step has all keys, ``action_mask`` among
            them; without it those of games that end are there when some do.
    """

    output: str = "torch"
    observation: str = "points"
    episode_statistics: bool = True
    full_info: bool = False

    def __post_init__(self) -> None:
        check_choice("output", self.output, ("torch", "numpy"))
        check_choice("observation", self.observation, ("points", "flat"))
        for name in ("episode_statistics", "full_info"):
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise TypeError(f"{name} must be True or False, got {value!r}")

    def space(self, plan: StepPlan) -> spaces.Space[Any]:
        """What one game shows to the seat of a plan."""
        spec = plan.spec
        high = 1.0 if plan.scale_observation else np.inf
        rows = spec.max_num_points + rule_of(spec).extra_rows
        space: spaces.Space[Any] = spaces.Box(-1.0, high, (rows, spec.dimension), np.float32)
        if plan.seat != "host":
            parts = {"points": space, "coords": spaces.MultiBinary(spec.dimension)}
            turn = {} if plan.seat == "agent" else {"to_play": spaces.Discrete(2)}
            space = spaces.Dict({**parts, **turn})
        if self.observation == "points":
            return space
        flat = flatten_space(space)
        assert isinstance(flat, spaces.Box)
        return spaces.Box(flat.low.astype(np.float32), flat.high.astype(np.float32))


def flat_observation(seat: Seat, points: Any, coords: Any) -> Any:
    """float32 [N, F] of points float32 [N, P, D] and sets int8 [N, D].

    The set comes before the points; behind them, for both seats, whose turn it is (one of two).
    """
    points = points.reshape(len(points), -1)
    if seat == "host":
        return points
    parts = [coords, points]
    if seat == "both":
        named = coords.any(1)[:, None]
        parts += [~named, named]
    if isinstance(points, Tensor):
        return torch.cat([part.float() for part in parts], 1)
    return np.concatenate(parts, 1, dtype=np.float32)


class LegalMultiDiscrete(spaces.MultiDiscrete):
    """`MultiDiscrete` of N games that samples among the actions that are legal now.

    A copy, also a pickled one, is a plain `MultiDiscrete`: it has left its environment.
    """

    def __init__(self, space: spaces.MultiDiscrete, masks: Callable[[], np.ndarray | None]) -> None:
        super().__init__(space.nvec, space.dtype)
        self._masks = masks

    def sample(self, mask: Any = None, probability: Any = None) -> np.ndarray:
        """Uniform among the legal actions of each game; a mask or probabilities are obeyed."""
        legal = self._masks() if mask is None and probability is None else None
        if legal is None:
            return super().sample(mask, probability)
        keys = np.where(legal, self.np_random.random(legal.shape), -1.0)
        return keys.argmax(1).astype(self.dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        return spaces.MultiDiscrete, (self.nvec, self.dtype)
