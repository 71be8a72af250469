"""Rates with a policy of [256, 256], and with learning on top: DDQN beside DQN of others.

A network of points as a set, then [256, 128], is measured beside the plain one, with the same
batches. (`make train` learns with such a network and a smaller [64].)

With a policy: every action comes out of a forward pass and is then replaced by a uniformly random
one, so that the positions are those of the environment's own rate. With training: a transition is
also stored and one update of 256 transitions is made per parallel step; exploration stays at 0.1.
The peers learn on this package's environment with numpy results: SB3's DQN, SBX's (JAX), and a
plain loop; SB3's also on its usual ``DummyVecEnv``.
"""

from __future__ import annotations

import importlib.util
import statistics
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import gymnasium
import numpy as np
import torch
from stable_baselines3 import DQN
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import KVWriter, Logger

import resgym  # noqa: F401  registers the environments
from benchmarks.environment import ENV_ID, backends, largest_eager, sizes, wait_for
from benchmarks.torch_dqn import Loop
from sb3_ext.adapter.tensor_vec_env import TensorVecEnv
from sb3_ext.ddqn import DDQN
from sb3_ext.replay.prioritized import PrioritizedReplayBuffer

BATCH, NET_ARCH, EXPLORATION = 256, [256, 256], 0.1
POINT_SET = {"extractor": "point_set", "net_arch": [256, 128]}
LARGEST_STOCK = 1024  # games that SB3's DummyVecEnv is measured with


def shared(games: int, device: str) -> dict[str, Any]:
    return {
        "batch_size": BATCH,
        "buffer_size": max(100_000, 4 * games),
        "device": device,
        "gradient_steps": 1,
        "learning_starts": games,
        "policy_kwargs": {"net_arch": NET_ARCH},
        "seed": 0,
        "train_freq": 1,
    }


def ddqn(games: int, device: str, options: dict[str, Any], **arguments: Any) -> DDQN:
    env = gymnasium.make_vec(ENV_ID, num_envs=games, device=device, **options)
    return DDQN(
        "MlpPolicy",
        TensorVecEnv(env),
        exploration_rate=EXPLORATION,
        **{**shared(games, device), **arguments},
    )


def stock_dqn(
    games: int, options: dict[str, Any], kind: type[Any] = DQN, batched: bool = False
) -> Any:
    """A DQN with SB3's arguments, on its usual environment or on a batched one of this package."""
    if batched:
        env: Any = TensorVecEnv(gymnasium.make_vec(ENV_ID, num_envs=games, **options))
    else:
        env = make_vec_env(ENV_ID, n_envs=games, seed=0, env_kwargs=options)
    return kind(
        "MlpPolicy",
        env,
        target_update_interval=10_000,
        exploration_initial_eps=EXPLORATION,
        exploration_final_eps=EXPLORATION,
        **shared(games, "cpu"),
    )


def sbx_dqn(games: int, options: dict[str, Any]) -> Any:
    if importlib.util.find_spec("sbx") is None:
        raise ImportError("SBX is not installed (pip install sbx-rl)")
    import sbx

    return stock_dqn(games, options, sbx.DQN, batched=True)


def plain_dqn(games: int, options: dict[str, Any]) -> Loop:
    env = gymnasium.make_vec(ENV_ID, num_envs=games, output="numpy", **options)
    return Loop(
        env,
        net_arch=NET_ARCH,
        batch=BATCH,
        capacity=shared(games, "cpu")["buffer_size"],
        exploration=EXPLORATION,
    )


class WithPolicy:
    """A vector environment whose actions pass through DDQN's network."""

    figures: ClassVar[dict[str, float]] = {}

    def __init__(self, games: int, device: str, threads: int, options: dict[str, Any]) -> None:
        self.games, self.device, self.threads = games, device, threads
        self.model = ddqn(games, device, options)
        self.env: Any = self.model.env
        self.env.seed(0)
        self.observation = self.env.reset_tensors()
        self.generator = torch.Generator(device=device).manual_seed(0)

    def steps(self, number: int) -> None:
        with torch.no_grad():
            for _ in range(number):
                greedy = self.model.q_net(self.observation).argmax(dim=1)
                actions = greedy.random_(int(self.model.action_space.n), generator=self.generator)
                self.observation = self.env.step_tensors(actions)[0]

    def wait(self) -> None:
        wait_for(self.device)

    def close(self) -> None:
        self.env.close()


class StockWithPolicy:
    """``DummyVecEnv`` and the forward pass of SB3's DQN."""

    device, threads = "cpu", 1
    figures: ClassVar[dict[str, float]] = {}

    def __init__(self, games: int, options: dict[str, Any]) -> None:
        self.games = games
        self.model = stock_dqn(games, options)
        self.env: Any = self.model.env
        self.observation = self.env.reset()
        self.generator = np.random.default_rng(0)

    def steps(self, number: int) -> None:
        for _ in range(number):
            greedy, _ = self.model.predict(self.observation, deterministic=True)
            actions = self.generator.integers(self.env.action_space.n, size=greedy.shape)
            self.observation = self.env.step(actions)[0]

    def wait(self) -> None:
        pass

    def close(self) -> None:
        self.env.close()


class _Shares(KVWriter):
    """The parts of the time that the last log tells of."""

    shares: Sequence[float] = ()

    def write(self, key_values: dict[str, Any], *_: Any) -> None:
        self.shares = [value for key, value in key_values.items() if key.endswith("_share")]

    def close(self) -> None:
        pass


class Learning:
    """`learn` of an algorithm; one call per repeat, so its small overhead counts."""

    def __init__(self, model: Any, device: str, threads: int | None) -> None:
        self.model, self.device, self.threads = model, device, threads
        self.games = model.n_envs
        self.shares: dict[int, list[float]] = {}
        self.logged = _Shares()
        if isinstance(model, DDQN):
            model.set_logger(Logger(None, [self.logged]))

    def steps(self, number: int) -> None:
        self.model.learn(number * self.games, log_interval=1 << 40, reset_num_timesteps=False)
        # On an accelerator the clock sees when work is handed over, not when it is done.
        if self.logged.shares and self.device == "cpu":
            share = 1.0 - sum(self.logged.shares)
            self.shares[number] = [*self.shares.pop(number, []), share]

    @property
    def figures(self) -> dict[str, float]:
        """Median share of the repeats in neither the environment nor updates, where it is known."""
        if not self.shares:
            return {}
        return {"collection_share": statistics.median([*self.shares.values()][-1])}

    def wait(self) -> None:
        wait_for(self.device)

    def close(self) -> None:
        self.model.env.close()


def policy_makers(
    dimension: int, points: int, games: int, device: str, threads: tuple[int, ...]
) -> list[tuple[str, Callable[[], Any]]]:
    options = sizes(dimension, points)
    found: list[tuple[str, Callable[[], Any]]] = []
    for name in backends(device):
        if device == "cpu" and name == "torch" and games > largest_eager(dimension, points):
            continue
        for number in threads if device == "cpu" else threads[:1]:
            given = {**options, "backend": name}
            found.append(
                (
                    f"resgym {name}, {number}",
                    lambda given=given, number=number: WithPolicy(games, device, number, given),
                )
            )
    if device == "cpu" and games <= LARGEST_STOCK:
        found.append(("SB3 DQN, DummyVecEnv, 1", lambda: StockWithPolicy(games, options)))
    return found


def training_makers(
    dimension: int, points: int, games: int, device: str, threads: tuple[int, ...]
) -> list[tuple[str, Callable[[], Any]]]:
    options = sizes(dimension, points)
    found: list[tuple[str, Callable[[], Any]]] = []

    def learning(name: str, number: int, **arguments: Any) -> Callable[[], Any]:
        given = {**options, "backend": name}
        return lambda: Learning(ddqn(games, device, given, **arguments), device, number)

    names = backends(device)
    for name in names:
        if device == "cpu" and name == "torch" and games > largest_eager(dimension, points):
            continue
        for number in threads if device == "cpu" else threads[:1]:
            found.append((f"DDQN {name}, {number}", learning(name, number)))
    best = "numba" if "numba" in names else names[-1]
    if device == "cpu":
        for number in threads:
            single = learning(best, number)
            found.append((f"DDQN {best} float32 rollouts, {number}", single))
            # The target of the peers: one forward pass fewer.
            found.append(
                (f"DDQN {best} single net, {number}", learning(best, number, double_q=False))
            )
            kind = {"replay_buffer_class": PrioritizedReplayBuffer}
            found.append((f"DDQN {best} prioritized, {number}", learning(best, number, **kind)))
            sets = learning(best, number, policy_kwargs=POINT_SET)
            found.append((f"DDQN {best} point_set, {number}", sets))
        fast = {**options, "backend": best}
        for number in threads:
            found += [
                (
                    f"SB3 DQN on resgym, {number}",
                    lambda n=number: Learning(stock_dqn(games, fast, batched=True), device, n),
                ),
                (
                    f"plain DQN on resgym, {number}",
                    lambda n=number: Learning(plain_dqn(games, fast), device, n),
                ),
            ]
        found.append(("SBX DQN on resgym", lambda: Learning(sbx_dqn(games, fast), device, None)))
        if games <= LARGEST_STOCK:
            found.append(
                (
                    "SB3 DQN, DummyVecEnv, 1",
                    lambda: Learning(stock_dqn(games, options), device, 1),
                )
            )
    return found
