"""One of the main rates of a tree, printed; `benchmarks.compare` runs this in fresh processes.

It uses names of the packages that do not move, so that it can measure trees of long ago. What is
compiled or drawn first is not timed.
"""

from __future__ import annotations

import inspect
import itertools
import sys
import time
from collections.abc import Callable
from typing import Any


def games(number: int, **options: Any) -> Callable[[], int]:
    """A parallel step of many games, host's and agent's choices counted together as a move each."""
    import gymnasium
    import torch

    import resgym

    opponent = options.pop("opponent", "random")
    given = resgym.make_agent(opponent[1:]) if opponent.startswith("=") else opponent
    env = gymnasium.make_vec("resgym/HironakaHost-v0", num_envs=number, opponent=given, **options)
    env.reset(seed=0)
    source = torch.Generator().manual_seed(0)
    legal = int(env.single_action_space.n)
    actions = [torch.randint(legal, (number,), generator=source) for _ in range(16)]
    turn = itertools.cycle(actions)

    def step() -> int:
        env.step(next(turn))
        return number

    return step


def single() -> Callable[[], int]:
    """200 moves of one environment of `gymnasium.make`."""
    import gymnasium
    import numpy as np

    import resgym  # noqa: F401  registers the environments

    env = gymnasium.make("resgym/HironakaHost-v0", opponent="choose_first")
    env.reset(seed=0)
    actions = np.random.default_rng(0).integers(4, size=200)

    def play() -> int:
        for action in actions:
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()
        return len(actions)

    return play


def learning(number: int, updates: int, **policy: Any) -> Callable[[], int]:
    """Transitions of `DDQN.learn`, an update of 256 per parallel step, rollouts in float32."""
    import gymnasium

    import resgym  # noqa: F401  registers the environments
    from sb3_ext.adapter.tensor_vec_env import TensorVecEnv
    from sb3_ext.ddqn import DDQN

    more: dict[str, Any] = {}
    if "rollout_precision" in inspect.signature(DDQN).parameters:  # of trees of long ago
        more["rollout_precision"] = "float32"
    env = gymnasium.make_vec("resgym/HironakaHost-v0", num_envs=number, opponent="random")
    model = DDQN(
        "MlpPolicy",
        TensorVecEnv(env),
        batch_size=256,
        buffer_size=200_000,
        gradient_steps=1,
        learning_starts=number,
        policy_kwargs=policy,
        seed=0,
        train_freq=1,
        **more,
    )

    def learn() -> int:
        model.learn(updates * number, log_interval=1 << 40, reset_num_timesteps=False)
        return updates * number

    return learn


def two_player() -> Callable[[], int]:
    """Ten iterations of the host/agent trainer: an update of each role with its rollouts."""
    from sb3_ext.two_player import HostAgentTrainer, read_config

    sizes = (f"roles.{role}.net_arch=[256, 256]" for role in ("host", "agent"))
    config = read_config("published", [*sizes, "compute.device=cpu", "compute.torch_threads=1"])
    trainer = HostAgentTrainer(config)
    players = config.training.players
    loop = getattr(trainer, "_steps", trainer)  # where it lay once
    loop.collect_initial_rollouts(players)

    def iterate() -> int:
        for _ in range(10):
            loop.step(players)
        return 10

    return iterate


def proofs() -> Callable[[], int]:
    """Least depths proved, of positions of 20 points in three axes."""
    import numpy as np

    import resgym

    source = np.random.default_rng(0)
    drawn = itertools.cycle(source.integers(0, 13, size=(400, 20, 3)).tolist())

    def prove() -> int:
        return sum(resgym.solve(next(drawn), max_positions=20_000).proved for _ in range(20))

    return prove


RATES: dict[str, tuple[str, Callable[[], Callable[[], int]]]] = {
    "games3": ("moves/s, 4,096 games of 3 axes", lambda: games(4096)),
    "games10": ("moves/s, 1,024 games of 10 axes", lambda: games(1024, dimension=10)),
    "asked": (
        "moves/s, 1,024 games, an agent asked",
        lambda: games(1024, opponent="=greedy_points"),
    ),
    "single": ("moves/s, gymnasium.make", single),
    "ddqn": (
        "transitions/s, DDQN [256, 256], 1,024 games",
        lambda: learning(1024, 20, net_arch=[256, 256]),
    ),
    "main": (
        "transitions/s, points as a set and [256, 128], 256 games",
        lambda: learning(256, 20, extractor="point_set", net_arch=[256, 128]),
    ),
    "two_player": ("iterations/s of the host/agent trainer", two_player),
    "proofs": ("least depths proved/s, 20 points of 3 axes", proofs),
}
"""Rates by name: what they count, and what makes a function that does some and says how many."""


def main(name: str, seconds: float) -> float:
    from resgym.kernels import dispatch

    dispatch.PATIENCE = 0.0  # compiled from the first step on
    do = RATES[name][1]()
    for _ in range(4):
        do()
    done, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        done += do()
    return done / (time.perf_counter() - begin)


if __name__ == "__main__":
    print(main(sys.argv[1], float(sys.argv[2])))
