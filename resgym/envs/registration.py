"""Gymnasium ids. The id says who you are."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import gymnasium

from resgym.game.spec import Role, check_integer

if TYPE_CHECKING:
    from resgym.envs.one_seat import AlternatingPlayers

DEFAULT_MAX_EPISODE_STEPS = 200
ENV_IDS = ("resgym/Hironaka-v0", "resgym/HironakaHost-v0", "resgym/HironakaAgent-v0")


def one_seat_vector_env(
    seat: Role,
    num_envs: int = 1,
    opponent: Any = None,
    max_episode_steps: int | None = DEFAULT_MAX_EPISODE_STEPS,
    **kwargs: Any,
) -> AlternatingPlayers:
    """A one-seat vector environment; keyword arguments as `HironakaVectorEnv`.

    ``max_episode_steps`` counts whole moves, the steps of this environment.
    """
    # Here, so that the ids are registered at once, without torch.
    from resgym.envs.one_seat import AlternatingPlayers
    from resgym.envs.two_player import HironakaVectorEnv

    if max_episode_steps is not None:
        max_episode_steps = 2 * check_integer("max_episode_steps", max_episode_steps, 1)
    base = HironakaVectorEnv(num_envs, max_episode_steps=max_episode_steps, **kwargs)
    return AlternatingPlayers(base, seat, opponent)


host_vector_env = partial(one_seat_vector_env, "host")
agent_vector_env = partial(one_seat_vector_env, "agent")

_HOST = ("single:HironakaHostEnv", "registration:host_vector_env")
_AGENT = ("single:HironakaAgentEnv", "registration:agent_vector_env")
_REGISTERED: dict[str, tuple[tuple[str, str], dict[str, Any]]] = {
    "resgym/Hironaka-v0": (("single:HironakaEnv", "two_player:HironakaVectorEnv"), {}),
    "resgym/HironakaHost-v0": (_HOST, {}),
    "resgym/HironakaAgent-v0": (_AGENT, {}),
    # For programs that take an id and nothing else.
    "resgym/HironakaHostFlat-v0": (_HOST, {"observation": "flat"}),
    "resgym/HironakaAgentFlat-v0": (
        _AGENT,
        {"observation": "flat", "invalid_action": "penalty"},
    ),
}


def register_envs() -> None:
    """Registers the ids with Gymnasium; a second call changes nothing."""
    for env_id, ((single, vector), kwargs) in _REGISTERED.items():
        if env_id in gymnasium.registry:
            continue
        gymnasium.register(
            env_id,
            entry_point=f"resgym.envs.{single}",
            vector_entry_point=f"resgym.envs.{vector}",
            max_episode_steps=DEFAULT_MAX_EPISODE_STEPS,
            # Our own message names what was done before the reset.
            order_enforce=False,
            kwargs=dict(kwargs),
        )
