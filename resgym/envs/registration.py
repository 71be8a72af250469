"""Gymnasium ids: choose the environment by the side that you want to play."""

from __future__ import annotations

from typing import Any

import gymnasium

DEFAULT_MAX_EPISODE_STEPS = 200

_ARGUMENTS: dict[str, dict[str, Any]] = {
    "resgym/Hironaka-v0": {},
    "resgym/HironakaHost-v0": {"seat": "host"},
    "resgym/HironakaAgent-v0": {"seat": "agent"},
    # For programs that take an id and no keywords.
    "resgym/HironakaHostFlat-v0": {"seat": "host", "observation": "flat"},
    "resgym/HironakaAgentFlat-v0": {
        "seat": "agent",
        "observation": "flat",
        "invalid_action": "penalty",
    },
}


def register_envs() -> None:
    """Register the ids with Gymnasium; a second call changes nothing."""
    for env_id, arguments in _ARGUMENTS.items():
        if env_id not in gymnasium.registry:
            gymnasium.register(
                env_id,
                entry_point="resgym.envs.environments:HironakaEnv",
                vector_entry_point="resgym.envs.environments:HironakaVectorEnv",
                max_episode_steps=DEFAULT_MAX_EPISODE_STEPS,
                # Our own message names what was done before the reset.
                order_enforce=False,
                kwargs=dict(arguments),
            )
