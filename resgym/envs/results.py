"""The form of results: arrays, observations, and the content of info."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from gymnasium.spaces.utils import flatten_space
from torch import Tensor

from resgym.game.episode import legal_actions
from resgym.game.spec import check_choice, check_flag
from resgym.game.state import rule_of
from resgym.game.stepping import Array, Seat, StepPlan, StepResult


@dataclass(frozen=True)
class ResultForm:
    """The form of an environment's results; the game is the same.

    Attributes:
        output: ``torch`` (tensors on the environment's device) or ``numpy``. NumPy has float64
            rewards and a mask ``_key`` for each key of info, as Gymnasium's own environments.
        observation: ``points``, or ``flat``: one row of numbers per game, in the order of
            `gymnasium.spaces.flatten`.
        episode_statistics: whether info has ``episode`` when games end.
        full_info: whether the info of every reset and step has all keys, including ``action_mask``;
            without it, those of ended games are there when a game ends.
    """

    output: str = "torch"
    observation: str = "points"
    episode_statistics: bool = True
    full_info: bool = False

    def __post_init__(self) -> None:
        check_choice("output", self.output, ("torch", "numpy"))
        check_choice("observation", self.observation, ("points", "flat"))
        for name in ("episode_statistics", "full_info"):
            check_flag(name, getattr(self, name))

    def space(self, plan: StepPlan) -> spaces.Space[Any]:
        """Return the observation space of one game for the seat of a plan."""
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

    def out(self, value: Array | None) -> Any:
        """Convert an array to the output form."""
        if value is None:
            return None
        if self.output == "torch":
            return value if isinstance(value, Tensor) else torch.from_numpy(value)
        return value.cpu().numpy() if isinstance(value, Tensor) else value

    def paid(self, value: Array | None) -> Any:
        """Convert rewards; in NumPy they are float64, as in Gymnasium's own environments."""
        paid = self.out(value)
        return paid.astype(np.float64) if self.output == "numpy" else paid

    def seen(self, seat: Seat, points: Array, coords: Array) -> Any:
        """Return the observation of a seat, from points float32 [N, P, D] and sets int8 [N, D]."""
        points, coords = self.out(points), self.out(coords)
        if self.observation == "flat":
            return flat_observation(seat, points, coords)
        if seat == "host":
            return points
        if seat == "agent":
            return {"coords": coords, "points": points}
        named = coords.any(1)  # 1 where a set awaits the agent's answer
        to_play = named.long() if isinstance(named, Tensor) else named.astype(np.int64)
        return {"coords": coords, "points": points, "to_play": to_play}

    def info(self, plan: StepPlan, result: StepResult, observation: Any) -> dict[str, Any]:
        """Return the info of a step that is observed so."""
        info: dict[str, Any] = {"overflow": self.out(result.overflow)}
        if self.full_info:
            legal = legal_actions(plan, result.games.tensors())
            info["action_mask"] = self.out(legal.to(torch.int8))
        if result.some_ended or self.full_info:
            ended = self.out(result.ended)
            if self.episode_statistics:
                returns, lengths = self.paid(result.episode_returns), result.episode_lengths
                info["episode"], info["_episode"] = {"r": returns, "l": self.out(lengths)}, ended
            if plan.autoreset_mode == "SAME_STEP":
                if result.final_points is None or result.final_coords is None:
                    final = deepcopy(observation)
                else:
                    final = self.seen(plan.seat, result.final_points, result.final_coords)
                copied = ended.clone() if isinstance(ended, Tensor) else ended.copy()
                info["final_obs"], info["_final_obs"] = final, copied
        if result.rewards is not None:
            info["rewards"] = self.paid(result.rewards)
        if self.output == "numpy":
            for key in (*info,):
                if key[0] != "_":
                    info.setdefault("_" + key, np.ones(len(result.overflow), bool))
        return info


def flat_observation(seat: Seat, points: Any, coords: Any) -> Any:
    """Return float32 [N, F] from points float32 [N, P, D] and sets int8 [N, D].

    The set comes before the points; for both seats, whose turn it is (one of two) comes last.
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


class Legal:
    """A space that samples among the actions that are legal now.

    Gymnasium's tools and most tutorials draw actions by ``action_space.sample()`` without a mask. A
    copy (also a pickled one) continues the same random numbers, but is a plain space, detached
    from its environment. A copied environment makes a space of its copy.
    """

    _masks: Callable[[], np.ndarray | None]

    def __init__(self, space: spaces.Space[Any], masks: Callable[[], np.ndarray | None]) -> None:
        vars(self).update(vars(space), _masks=masks)

    def __reduce__(self) -> tuple[Any, ...]:
        kept = vars(self).copy()
        del kept["_masks"]
        return object.__new__, (type(self).__bases__[-1],), kept


class LegalDiscrete(Legal, spaces.Discrete):
    """A `Discrete` space of legal actions."""

    def sample(self, mask: Any = None, probability: Any = None) -> np.int64:
        """Draw until the action is legal; obey a mask or probabilities."""
        action = super().sample(mask, probability)
        legal = self._masks() if mask is None and probability is None else None
        while legal is not None and legal.any() and not legal.ravel()[action]:
            action = super().sample()
        return action


class LegalMultiDiscrete(Legal, spaces.MultiDiscrete):
    """A `MultiDiscrete` space of N games with legal actions."""

    def sample(self, mask: Any = None, probability: Any = None) -> np.ndarray:
        """Draw uniformly among the legal actions of each game; obey a mask or probabilities."""
        legal = self._masks() if mask is None and probability is None else None
        if legal is None:
            return super().sample(mask, probability)
        keys = np.where(legal, self.np_random.random(legal.shape), -1.0)
        return keys.argmax(1).astype(self.dtype)
