"""Moves per second of environments alone: every backend, and what else plays the same game.

A move is a host's and an agent's choice together, of uniformly random players, through
``VectorEnv.step``; ends, restarts from freshly drawn positions and observations are part of it. The
learner's actions are drawn beforehand.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any, ClassVar

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from stable_baselines3.common.env_util import make_vec_env

from resgym.kernels.dispatch import BACKENDS

ENV_ID = "resgym/HironakaHost-v0"
ACTIONS = 64  # batches of actions drawn beforehand


def sizes(dimension: int, points: int) -> dict[str, Any]:
    return {"dimension": dimension, "max_num_points": points, "opponent": "random"}


def wait_for(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize(device)


class Vector:
    """A vector environment made by ``gymnasium.make_vec``."""

    def __init__(
        self, games: int, device: str, threads: int | None, options: dict[str, Any]
    ) -> None:
        self.games, self.device, self.threads = games, device, threads
        self.env: Any = gymnasium.make_vec(ENV_ID, num_envs=games, **options)
        self.env.reset(seed=0)
        number = int(self.env.single_action_space.n)
        generator = torch.Generator().manual_seed(0)
        drawn = [torch.randint(number, (games,), generator=generator) for _ in range(ACTIONS)]
        as_tensors = getattr(self.env.unwrapped, "output", "numpy") == "torch"
        self.actions = [each.to(device) if as_tensors else each.numpy() for each in drawn]
        self.played = 0

    def steps(self, number: int) -> None:
        step, actions, played = self.env.step, self.actions, self.played
        for index in range(played, played + number):
            step(actions[index % ACTIONS])
        self.played += number

    def wait(self) -> None:
        wait_for(self.device)

    @property
    def figures(self) -> dict[str, float]:
        games = getattr(self.env.unwrapped, "games", None)
        return {} if games is None else {"alive_points": float(games.counts.float().mean())}

    def close(self) -> None:
        self.env.close()


class Single:
    """``gymnasium.make``: one game, resets included, its wrappers too."""

    games, device, threads = 1, "cpu", 1
    figures: ClassVar[dict[str, float]] = {}

    def __init__(self, options: dict[str, Any]) -> None:
        self.env = gymnasium.make(ENV_ID, **options)
        self.env.reset(seed=0)
        drawn = np.random.default_rng(0).integers(self.env.action_space.n, size=1024)  # type: ignore[attr-defined]
        self.actions = drawn.tolist()
        self.played = 0

    def steps(self, number: int) -> None:
        for index in range(self.played, self.played + number):
            _, _, terminated, truncated, _ = self.env.step(self.actions[index % 1024])
            if terminated or truncated:
                self.env.reset()
        self.played += number

    def wait(self) -> None:
        pass

    def close(self) -> None:
        self.env.close()


class Dummy:
    """Stable-baselines3's ``DummyVecEnv`` of single environments."""

    device, threads = "cpu", 1
    figures: ClassVar[dict[str, float]] = {}

    def __init__(self, games: int, options: dict[str, Any]) -> None:
        self.games = games
        self.env = make_vec_env(ENV_ID, n_envs=games, seed=0, env_kwargs=options)
        self.env.reset()
        number = self.env.action_space.n  # type: ignore[attr-defined]
        self.actions = np.random.default_rng(0).integers(number, size=(ACTIONS, games))
        self.played = 0

    def steps(self, number: int) -> None:
        for index in range(self.played, self.played + number):
            self.env.step(self.actions[index % ACTIONS])
        self.played += number

    def wait(self) -> None:
        pass

    def close(self) -> None:
        self.env.close()


def backends(device: str) -> list[str]:
    """Names of the backends that work on a device."""
    found = []
    for name in BACKENDS:
        # On a CPU Triton can only be interpreted, which is for tests.
        if name == "auto" or (name == "triton" and device == "cpu"):
            continue
        try:
            gymnasium.make_vec(ENV_ID, num_envs=1, backend=name, device=device).close()
        except ValueError:
            continue
        found.append(name)
    return found


def largest_eager(dimension: int, points: int) -> int:
    """Games up to which eager torch on a CPU is waited for: it compares all pairs of points."""
    return 65_536 if dimension * points <= 60 else 16_384 if dimension * points <= 200 else 4_096


def jax_subject(dimension: int, points: int, games: int, rollouts: bool) -> Any:
    if importlib.util.find_spec("jax") is None:
        raise ImportError("JAX is not installed (pip install jax)")
    from benchmarks.jax_step import Played

    return Played(dimension, points, games, rollouts)


def makers(
    dimension: int, points: int, games: int, device: str, threads: tuple[int, ...]
) -> list[tuple[str, Callable[[], Any]]]:
    """What is measured for one size on one device, by name; threads follow a comma."""
    options = sizes(dimension, points)
    found: list[tuple[str, Callable[[], Any]]] = []
    for name in backends(device):
        if device == "cpu" and name == "torch" and games > largest_eager(dimension, points):
            continue
        for number in threads if device == "cpu" else threads[:1]:
            given = {**options, "backend": name, "device": device}
            found.append(
                (
                    f"resgym {name}, {number}",
                    lambda given=given, number=number: Vector(games, device, number, given),
                )
            )
    if device != "cpu":
        return found
    if games == 1:
        found.append(("gymnasium.make, 1", lambda: Single(options)))
    if games <= 1024:
        same_step = {"autoreset_mode": AutoresetMode.SAME_STEP}
        sync = {**options, "vectorization_mode": "sync", "vector_kwargs": same_step}
        found.append(("SyncVectorEnv, 1", lambda: Vector(games, "cpu", 1, sync)))
        found.append(("SB3 DummyVecEnv, 1", lambda: Dummy(games, options)))
    if games >= 256:
        found.append(("JAX step", lambda: jax_subject(dimension, points, games, False)))
        found.append(("JAX rollout", lambda: jax_subject(dimension, points, games, True)))
    return found
