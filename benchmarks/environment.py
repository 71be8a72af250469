"""Moves per second of the environments: every backend, and Gymnasium's SyncVectorEnv.

A move is a host's and an agent's choice together, of random players through ``VectorEnv.step``;
ends, restarts from freshly drawn positions and observations are part of it. The backends take turns
after every repeat, so that whatever else the machine does falls on all of them.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import gymnasium
import torch

from resgym.kernels import BACKENDS

ENV_ID = "resgym/HironakaHost-v0"
BATCH_SIZES = (1, 64, 1024, 4096, 16384)
SHAPES = ((3, 20), (5, 20), (10, 20), (3, 50), (10, 50))  # dimension and points, at 4,096 games
GAMES = 4096
ORIGINAL = 46_000  # the original's fused torch game at 4,096 games, d = 3, on two cores
WARM_UP = 16

Spread = dict[str, float]


def spread(rates: list[float]) -> Spread:
    return {"median": statistics.median(rates), "min": min(rates), "max": max(rates)}


class Played:
    """A vector environment with actions drawn beforehand: the rate is the environment's alone."""

    def __init__(self, num_envs: int, **options: Any) -> None:
        self.env: Any = gymnasium.make_vec(ENV_ID, num_envs=num_envs, opponent="random", **options)
        self.env.reset(seed=0)
        number = int(self.env.single_action_space.n)
        generator = torch.Generator().manual_seed(0)
        drawn = [torch.randint(number, (num_envs,), generator=generator) for _ in range(64)]
        is_tensor = getattr(self.env.unwrapped, "output", "numpy") == "torch"
        self.actions = drawn if is_tensor else [actions.numpy() for actions in drawn]
        self.steps = 0
        for _ in range(WARM_UP):
            self.step()

    def step(self) -> None:
        self.env.step(self.actions[self.steps % len(self.actions)])
        self.steps += 1

    def rate(self, seconds: float) -> float:
        """Moves per second, over at least so many seconds."""
        before, begin = self.steps, time.perf_counter()
        while (elapsed := time.perf_counter() - begin) < seconds:
            self.step()
        return (self.steps - before) * self.env.num_envs / elapsed


def side_by_side(players: dict[str, Played], repeats: int, seconds: float) -> dict[str, Spread]:
    """The rates of several environments that take turns."""
    rates: dict[str, list[float]] = {name: [] for name in players}
    for _ in range(repeats):
        for name, played in players.items():
            rates[name].append(played.rate(seconds))
    for played in players.values():
        played.env.close()
    return {name: spread(found) for name, found in rates.items()}


def backends() -> list[str]:
    """Names of the backends that work on this CPU."""
    found = []
    for name in BACKENDS:
        try:
            if name != "auto":
                Played(1, backend=name).env.close()
                found.append(name)
        except ValueError:
            continue
    return found


class Single:
    """`gymnasium.make`: one game at a time, resets included."""

    def __init__(self) -> None:
        self.env = gymnasium.make(ENV_ID, opponent="random")
        self.env.reset(seed=0)
        self.rate(0.1)

    def rate(self, seconds: float) -> float:
        steps, begin = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - begin) < seconds:
            _, _, terminated, truncated, _ = self.env.step(steps % 4)
            steps += 1
            if terminated or truncated:
                self.env.reset()
        return steps / elapsed


def by_games(repeats: int, seconds: float) -> dict[int, dict[str, Spread]]:
    """Rates of all backends for several numbers of parallel games."""
    return {
        size: side_by_side(
            {name: Played(size, backend=name) for name in backends()}, repeats, seconds
        )
        for size in BATCH_SIZES
    }


def by_shape(repeats: int, seconds: float) -> dict[str, dict[str, Spread]]:
    """Rates of all backends for several dimensions and numbers of points."""
    return {
        f"d = {dimension}, P = {points}": side_by_side(
            {
                name: Played(GAMES, backend=name, dimension=dimension, max_num_points=points)
                for name in backends()
            },
            repeats,
            seconds,
        )
        for dimension, points in SHAPES
    }


def one_at_a_time(repeats: int, seconds: float) -> dict[str, Spread]:
    """The same game as single environments, alone and under Gymnasium's SyncVectorEnv."""
    single = Single()
    rates = [single.rate(seconds) for _ in range(repeats)]
    sync = {
        f"SyncVectorEnv, {size} games": Played(size, vectorization_mode="sync")
        for size in (64, 1024)
    }
    return {"gymnasium.make": spread(rates), **side_by_side(sync, repeats, seconds)}


def table(repeats: int = 5, seconds: float = 1.0) -> dict[str, Any]:
    return {
        "moves_per_second": by_games(repeats, seconds),
        "by_shape": by_shape(repeats, seconds),
        "one_at_a_time": one_at_a_time(repeats, seconds),
        "threads": torch.get_num_threads(),
    }


def formatted(result: dict[str, Any]) -> str:
    lines = [
        "environment, d = 3, 20 points, random players, restarts included, "
        f"{result['threads']} threads: moves per second"
    ]

    def row(name: str, rates: Spread, ratio: float | None = None) -> str:
        figures = "  ".join(f"{rates[key]:>12,.0f}" for key in ("median", "min", "max"))
        return f"{name:32}  {figures}" + (f"  {ratio:>6.1f}x" if ratio is not None else "")

    def block(title: str, rates: dict[str, Spread]) -> None:
        torch_rate = rates["torch"]["median"]
        for name, found in rates.items():
            lines.append(row(f"{title}, {name}", found, found["median"] / torch_rate))

    lines.append(f"{'':32}  {'median':>12}  {'min':>12}  {'max':>12}  {'torch':>7}")
    for size, rates in result["moves_per_second"].items():
        block(f"{int(size):,} games", rates)
    lines.append(f"at {GAMES:,} games, by dimension and points")
    for shape, rates in result["by_shape"].items():
        block(shape, rates)
    lines.append("one game at a time")
    lines += [row(name, rates) for name, rates in result["one_at_a_time"].items()]
    best = max(rates["median"] for rates in result["moves_per_second"][GAMES].values())
    lines.append(
        f"the best at {GAMES:,} games is {best / ORIGINAL:.0f} times the {ORIGINAL:,} of the "
        "original's fused game"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    print(formatted(table()))
