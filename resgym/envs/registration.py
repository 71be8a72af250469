"""Gymnasium ids: choose the environment by the side that you want to play."""

from __future__ import annotations

from typing import Any

import gymnasium

DEFAULT_MAX_EPISODE_STEPS = 200

_ARGUMENTS = {
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

# Tasks of the benchmark and the mean return that solves each, 95 % of best play (see
# docs/scoreboard.md). The ids are resgym/Worst5-v0, resgym/Worst20-v0 and so on.
_SOLVED = {
    "worst-5": -14.24,
    "worst-20": -18.03,
    "axes4": -8.51,
    "first-20": -5.86,
    "answers-20": 18.93,
}


def register_envs() -> None:
    """Register the ids with Gymnasium; a second call changes nothing."""
    for env_id, arguments in _ARGUMENTS.items():
        _register(
            env_id,
            entry_point="resgym.envs.environments:HironakaEnv",
            vector_entry_point="resgym.envs.environments:HironakaVectorEnv",
            kwargs=dict(arguments),
        )
    for task, threshold in _SOLVED.items():
        _register(
            f"resgym/{task.title().replace('-', '')}-v0",
            entry_point="resgym.benchmark.tasks:task_env",
            reward_threshold=threshold,
            kwargs={"task": task},
        )


def _register(env_id: str, **about: Any) -> None:
    if env_id not in gymnasium.registry:
        # Our own message names what was done before the reset.
        common = {"max_episode_steps": DEFAULT_MAX_EPISODE_STEPS, "order_enforce": False}
        gymnasium.register(env_id, **common, **about)  # type: ignore[arg-type]
