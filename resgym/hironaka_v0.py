"""Both seats of the game as a PettingZoo environment (extra ``pettingzoo``).

``env`` plays in turns, ``raw_env`` does so without PettingZoo's wrappers, and in ``parallel_env``
both seats choose at once.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Space

from resgym.envs.environments import HironakaEnv
from resgym.envs.forms import Info, LegalDiscrete, StateDict
from resgym.envs.registration import DEFAULT_MAX_EPISODE_STEPS
from resgym.game.spec import check_integer

try:
    from pettingzoo import AECEnv
    from pettingzoo.utils import wrappers
    from pettingzoo.utils.conversions import aec_to_parallel
except ImportError as error:
    raise ImportError(
        "resgym.hironaka_v0 needs PettingZoo: pip install 'resgym[pettingzoo]'"
    ) from error

HOST, AGENT = "host_0", "agent_0"


class raw_env(AECEnv):
    """Hironaka's game in turns: ``host_0`` chooses a set of axes, ``agent_0`` one axis of it.

    Both seats observe ``observation`` float32 [P + 1, D]: the points as in ``resgym/Hironaka-v0``,
    and in the last row the host's set (1 for its axes; zeros on the host's turn). They also get
    ``action_mask`` int8 [A], which is zeros for the seat that does not move, and is in the info
    too. Actions are ``Discrete(2^D - D - 1)`` for the host (`resgym.game.spec.action_axes`) and
    ``Discrete(D)`` for the agent. The spaces sample legal actions, also without a mask. The
    rewards of a move are paid on the agent's half-move.
    """

    def __init__(
        self,
        max_cycles: int | None = DEFAULT_MAX_EPISODE_STEPS,
        simultaneous: bool = False,
        **kwargs: Any,
    ) -> None:
        """Make the environment.

        Args:
            max_cycles: moves after which a game is truncated; None for no limit.
            simultaneous: the agent chooses without seeing the host's set; an axis outside the set
                stands for the next axis in it, in cyclic order.
            kwargs: as in `resgym.HironakaVectorEnv`, except those of vector environments.

        Raises:
            ValueError, TypeError: an argument is out of range; the message names it.
        """
        super().__init__()
        for name in {"max_episode_steps", "observation", "seat"} & kwargs.keys():
            raise TypeError(
                f"{name} is for Gymnasium's environments: here max_cycles ends games, "
                "and both seats see points"
            )
        half_moves = None if max_cycles is None else 2 * check_integer("max_cycles", max_cycles, 1)
        self._game = HironakaEnv(max_episode_steps=half_moves, **kwargs)
        self._simultaneous = simultaneous
        spec = self._game.vector_env.plan.spec
        if simultaneous and spec.kind.limits_sets:
            raise ValueError(f"simultaneous must be False with rule {spec.rule!r}, got True")
        sizes = {HOST: spec.num_host_actions, AGENT: spec.dimension}
        self.possible_agents = [HOST, AGENT]
        self.agents: list[str] = []
        self.render_mode = self._game.render_mode
        self.metadata = {
            **self._game.metadata,
            "name": "hironaka_v0",
            "is_parallelizable": simultaneous,
        }
        seen: Any = self._game.observation_space
        rows, dimension = seen["points"].shape
        points = Box(-1.0, seen["points"].high.max(), (rows + 1, dimension), np.float32)
        self.observation_spaces = {
            seat: Dict(observation=points, action_mask=Box(0, 1, (size,), np.int8))
            for seat, size in sizes.items()
        }
        self.action_spaces = {seat: Discrete(size) for seat, size in sizes.items()}
        self.__setstate__({})

    def __setstate__(self, state: StateDict) -> None:
        """Bind the action spaces to this environment, whose masks they sample by."""
        self.__dict__.update(state)
        self.action_spaces = {
            seat: LegalDiscrete(space, partial(self._mask, seat))
            for seat, space in self.action_spaces.items()
        }

    def observation_space(self, agent: str) -> Space[Any]:
        """Return a seat's observation space."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Space[Any]:
        """Return a seat's action space."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start a game; ``options={"points": ...}`` sets the start, other keys are ignored.

        With rule ``thom``, ``weights`` may be given too.
        """
        given = options or {}
        given = {key: given[key] for key in ("points", "weights") if key in given}
        self._seen, info = self._game.reset(seed=seed, options=given)
        self.agents = self.possible_agents[:]
        self.agent_selection = HOST
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = self.rewards.copy()
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = self.terminations.copy()
        self._inform(info)

    def observe(self, agent: str) -> Any:
        """Return what ``agent`` observes now."""
        coords = self._seen["coords"]
        if self._simultaneous and agent == AGENT:
            coords = np.zeros_like(coords)
        return {
            "observation": np.vstack([self._seen["points"], coords]),
            "action_mask": self._mask(agent),
        }

    def _mask(self, agent: str) -> np.ndarray:
        """Return the legal actions int8 [A] of a seat; none if it does not move now."""
        mask = np.zeros(self.action_spaces[agent].n, np.int8)
        if agent in self.agents and not (self.terminations[agent] or self.truncations[agent]):
            if self._simultaneous:
                mask[:] = 1
            elif agent == self.agent_selection:
                mask[:] = self._game.action_masks()[: len(mask)]
        return mask

    def _inform(self, info: Info) -> None:
        self.infos = {
            seat: {"overflow": info["overflow"], "action_mask": self._mask(seat)}
            for seat in self.agents
        }

    def step(self, action: Any) -> None:
        """Play the action of the seat that moves; None for a seat whose game is over.

        Raises:
            ValueError: the action is illegal; nothing changes then.
        """
        seat = self.agent_selection
        if self.terminations[seat] or self.truncations[seat]:
            self._was_dead_step(action)
            return
        if self._simultaneous and seat == AGENT:
            action = self._next_axis(action)
        self._seen, _, terminated, truncated, info = self._game.step(action)
        self._cumulative_rewards[seat] = 0.0
        self.rewards = dict(zip(self.agents, map(float, info["rewards"]), strict=True))
        self.terminations = dict.fromkeys(self.agents, terminated)
        self.truncations = dict.fromkeys(self.agents, truncated)
        self.agent_selection = AGENT if seat == HOST else HOST
        self._inform(info)
        self._accumulate_rewards()

    def _next_axis(self, action: Any) -> int:
        named = self._seen["coords"]
        dimension = len(named)
        axis = check_integer("action", action, 0, dimension - 1)
        return int(axis + np.roll(named, -axis).argmax()) % dimension

    def render(self) -> Any:
        """Render the game in ``render_mode``; see `resgym.HironakaVectorEnv.render`."""
        return self._game.render()


def env(**kwargs: Any) -> AECEnv:
    """Wrap `raw_env` in PettingZoo's wrappers: an illegal action loses the game (reward -1)."""
    wrapped = wrappers.TerminateIllegalWrapper(raw_env(**kwargs), illegal_reward=-1)
    return wrappers.OrderEnforcingWrapper(wrappers.AssertOutOfBoundsWrapper(wrapped))


def parallel_env(**kwargs: Any) -> Any:
    """Make the game in which both seats choose at once (``simultaneous``), one move a step."""
    return aec_to_parallel(raw_env(simultaneous=True, **kwargs))
