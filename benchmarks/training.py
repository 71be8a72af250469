"""Transitions per second of learning: DDQN on tensors beside SB3's DQN on single environments."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import torch
from stable_baselines3 import DQN
from stable_baselines3.common.env_util import make_vec_env

import resgym  # noqa: F401  registers the environments
from sb3_ext.adapter.tensor_vec_env import TensorVecEnv
from sb3_ext.ddqn import DDQN

GAMES, BATCH, NET_ARCH = 1024, 256, [256, 256]
OPTIONS: dict[str, Any] = {"opponent": "choose_first", "reward": "step"}
SHARED: dict[str, Any] = {
    "batch_size": BATCH,
    "buffer_size": 200_000,
    "gradient_steps": 1,
    "learning_starts": GAMES,
    "policy_kwargs": {"net_arch": NET_ARCH},
    "seed": 0,
    "train_freq": 1,
}


def ddqn(rollout_precision: str = "float32") -> DDQN:
    games = gymnasium.make_vec("resgym/HironakaHost-v0", num_envs=GAMES, **OPTIONS)
    return DDQN(
        "HostPolicy",
        TensorVecEnv(games),
        rollout_precision=rollout_precision,
        device="cpu",
        **SHARED,
    )


def stock_dqn(num_envs: int) -> DQN:
    games = make_vec_env("resgym/HironakaHost-v0", n_envs=num_envs, env_kwargs=OPTIONS)
    return DQN("MlpPolicy", games, target_update_interval=10_000, device="cpu", **SHARED)


def learning_rates(
    make: Callable[[], Any], repeats: int = 5, seconds: float = 3.0
) -> dict[str, float]:
    """Median, least and greatest transitions per second of `learn`, after a warm-up.

    One update of `BATCH` transitions per parallel step, in every algorithm.
    """
    model = make()
    model.learn(4 * GAMES, log_interval=10**9)
    rates = []
    for _ in range(repeats):
        transitions, begin = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - begin) < seconds:
            before = model.num_timesteps
            model.learn(8 * GAMES, log_interval=10**9, reset_num_timesteps=False)
            transitions += model.num_timesteps - before
        rates.append(transitions / elapsed)
    model.env.close()
    return {"median": statistics.median(rates), "min": min(rates), "max": max(rates)}


def table(repeats: int = 5, seconds: float = 3.0) -> dict[str, Any]:
    """Rates of all learners from one run, and the ratio to stock DQN."""
    rows = {
        "DDQN": learning_rates(ddqn, repeats, seconds),
        "DDQN, rollouts in bfloat16": learning_rates(lambda: ddqn("bfloat16"), repeats, seconds),
        "SB3 DQN, DummyVecEnv": learning_rates(lambda: stock_dqn(GAMES), repeats, seconds),
    }
    stock = rows["SB3 DQN, DummyVecEnv"]["median"]
    for row in rows.values():
        row["times_stock"] = row["median"] / stock
    return {
        "games": GAMES,
        "batch_size": BATCH,
        "net_arch": NET_ARCH,
        "threads": torch.get_num_threads(),
        "transitions_per_second": rows,
    }


def formatted(result: dict[str, Any]) -> str:
    lines = [
        f"learning, {result['games']} games, one update of {result['batch_size']} per parallel "
        f"move, {result['net_arch']}, {result['threads']} threads: transitions per second",
        f"{'':28}  {'median':>10}  {'min':>10}  {'max':>10}  {'ratio':>7}",
    ]
    for name, row in result["transitions_per_second"].items():
        lines.append(
            f"{name:28}  {row['median']:>10,.0f}  {row['min']:>10,.0f}  {row['max']:>10,.0f}  "
            f"{row['times_stock']:>6.1f}x"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    print(formatted(table()))
