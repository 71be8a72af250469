"""What actors cost and bring: `python -m benchmarks.cluster`, with Ray, on a machine at rest.

The learner is that of the quickstart with more games. A chunk's path is serialising it into the
object store, getting it back and storing its steps in the replay buffer.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import torch

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.cluster import RayCollector
from sb3_ext.cluster.actor import Actor, ActorPlan, vector_env_spec
from sb3_ext.ddqn import DDQN

ENV_ID = "resgym/HironakaHost-v0"
ENV_KWARGS = {"opponent": "choose_first", "reward": "step"}


def make_model(games: int) -> DDQN:
    return DDQN(
        "HostPolicy",
        TensorVecEnv(gymnasium.make_vec(ENV_ID, num_envs=games, **ENV_KWARGS)),
        buffer_size=200_000,
        learning_starts=10_000,
        batch_size=512,
        gradient_steps=2,
        policy_kwargs={"extractor": "point_set", "net_arch": [256, 128]},
        seed=0,
        log_interval_seconds=None,
    )


def rate(games: int, chunk: int, steps: int, actors: int) -> tuple[float, dict[str, Any]]:
    """Transitions a second of `learn`, the start of the actors left out, and the statistics."""
    model = make_model(games)
    collector = RayCollector(
        ENV_ID, ENV_KWARGS, actors=actors, chunk=chunk, max_staleness=1000, deterministic=True
    )
    with collector.session(model):  # all is imported and compiled
        pass
    began: list[float] = []

    def note(*_: Any) -> bool:
        began.append(time.perf_counter())
        return True

    model.learn(games * steps, note, collector=collector)
    first = chunk if actors else 1
    played = model.num_timesteps - first * games
    return played / (time.perf_counter() - began[first - 1]), collector.statistics


def path_rate(games: int, chunk: int, repeats: int) -> tuple[float, int]:
    """Bytes a second of a chunk's path, and bytes of the chunk."""
    import ray

    model = make_model(games)
    plan = ActorPlan(
        env=vector_env_spec(ENV_ID),
        games=games,
        chunk=chunk,
        seed=0,
        explorer=model.explorer_elsewhere(),
        mask_source=model.legal_actions.source,
        observation_space=model.observation_space,
        action_space=model.action_space,
    )
    weights = {name: value.numpy() for name, value in model.playing_weights().items()}
    sent, _ = Actor(0, 0, plan, ENV_KWARGS).collect(0, 0, weights, None, None)
    buffer: Any = model.replay_buffer
    buffer.allocate()
    for field in buffer._store.fields.values():  # pages that were never written cost more
        field.zero_()
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        got = ray.get(ray.put(sent))
        for step in got.steps(games):
            o, a, r, terminated, truncated, reached, legal, _, row = step
            buffer.add_batch(o, reached, a, r, terminated, truncated, legal, first_row=row)
        seconds.append(time.perf_counter() - began)
    return sent.num_bytes / statistics.median(seconds), sent.num_bytes


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--games", type=int, default=1024)
    parser.add_argument("--chunk", type=int, default=16)
    parser.add_argument("--steps", type=int, default=192)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args(arguments)
    torch.set_num_threads(1)
    import ray

    ray.init("local", include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        speed, size = path_rate(args.games, args.chunk, repeats=20)
        print(f"a chunk: {size / 1e6:.1f} MB, its path {speed / 1e9:.2f} GB/s")
        rates: dict[int, list[float]] = {0: [], 1: []}
        for _ in range(args.rounds):
            for actors, found in rates.items():
                speed, counted = rate(args.games, args.chunk, args.steps, actors)
                found.append(speed)
                print(f"{actors} actors: {speed:,.0f} transitions/s", end="")
                print(f", {counted['waiting_seconds']:.1f} s waiting" if actors else "", flush=True)
        ratio = np.median(rates[1]) / np.median(rates[0])
        print(f"one actor over none: {ratio:.2f}")
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main()
