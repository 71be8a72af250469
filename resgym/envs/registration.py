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
    tasks = {f"resgym/{task.title().replace('-', '')}-v0": {"task": task} for task in _SOLVED}
    envs, task_env = "resgym.envs.environments:Hironaka", "resgym.benchmark.tasks:task_env"
    for env_id, arguments in (_ARGUMENTS | tasks).items():
        if env_id not in gymnasium.registry:
            gymnasium.register(
                env_id,
                entry_point=task_env if env_id in tasks else f"{envs}Env",
                vector_entry_point=None if env_id in tasks else f"{envs}VectorEnv",
                reward_threshold=_SOLVED.get(arguments.get("task", "")),
                max_episode_steps=DEFAULT_MAX_EPISODE_STEPS,
                # Our own message names what was done before the reset.
                order_enforce=False,
                kwargs=arguments,
            )
