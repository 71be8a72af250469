"""What actors cost and bring: `python -m benchmarks.cluster`, with Ray, on a machine at rest.

The learner is that of the quickstart with more games. A chunk's path is serialising it into the
object store, getting it back and storing its steps in the replay buffer. `--simulated 1 8 32`
measures instead how much of its own limit a learner reaches whose chunks come from so many
actors that only sleep and send, half as much again as it can take.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from unittest.mock import patch

import gymnasium
import numpy as np
import torch

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.adapter.seam import entries_of
from sb3_ext.cluster import RayCollector
from sb3_ext.cluster.actor import Actor, ActorPlan, Chunk, blocks, vector_env_maker
from sb3_ext.ddqn import DDQN
from sb3_ext.ddqn.collector import ParallelStep

ENV_ID = "resgym/HironakaHost-v0"
ENV_KWARGS = {"opponent": "choose_first", "reward": "step"}


def empty_steps(games: int, steps: int, space: Any) -> ParallelStep:
    """As many as of any chunk; no episode ends."""
    shown = np.zeros((steps, games, *space.shape), np.float32)
    actions, rewards = np.zeros((steps, games), np.int64), np.zeros((steps, games), np.float32)
    no = np.zeros((steps, games), bool)
    episode = {"ended": no, "r": rewards, "l": actions}
    return ParallelStep(shown, actions, rewards, no, no, shown.copy(), episode=episode)


class SimulatedActor(Actor):
    """Sleeps as long as `env_kwargs` say, and sends."""

    def __init__(self, plan: ActorPlan, env_kwargs: Mapping[str, Any]) -> None:
        self.plan, self.env_kwargs = plan, env_kwargs

    def collect(
        self, number: int, sequence: int, version: int, weights: Any, rate: Any, games: Any
    ) -> tuple[Chunk, dict[str, Any]]:
        time.sleep(self.env_kwargs["seconds"])
        plan = self.plan
        steps = empty_steps(plan.games, plan.chunk, plan.observation_space)
        return Chunk(number, sequence, version, 0.0, steps), {}


class AtOnce:
    """Has the next chunk at once: a learner's own limit."""

    def __init__(self, games: int, steps: int, space: Any) -> None:
        self.games, self.steps = games, empty_steps(games, steps, space)

    def publish(self, version: int, weights: Mapping[str, Any], rate: float | None) -> None:
        pass

    def collect(self, num_steps: int) -> Iterator[ParallelStep]:
        return blocks(self.steps, self.games)


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


def learning_rate(model: DDQN, steps: int, collector: Any, skipped: int) -> float:
    """Transitions a second of `learn`, the first parallel steps left out."""
    began: list[float] = []

    def note(*_: Any) -> bool:
        began.append(time.perf_counter())
        return True

    model.learn(model.n_envs * steps, note, collector=collector)
    played = model.num_timesteps - skipped * model.n_envs
    return played / (time.perf_counter() - began[skipped - 1])


def rate(games: int, chunk: int, steps: int, actors: int) -> tuple[float, dict[str, Any]]:
    """Transitions a second without the start of the actors, and the statistics."""
    model = make_model(games)
    collector = RayCollector(
        ENV_ID, ENV_KWARGS, actors=actors, chunk=chunk, max_staleness=1000, deterministic=True
    )
    return learning_rate(model, steps, collector, chunk if actors else 1), collector.statistics


def simulate(games: int, chunk: int, steps: int, actors: int, updates: bool) -> None:
    """Prints a learner's limit, and its rate with simulated actors."""

    def model() -> DDQN:
        made = make_model(games)
        made.learning_starts = 0 if updates else 10**12
        made.replay_buffer.allocate()
        for field in made.replay_buffer._fields.values():
            field.zero_()
        return made

    learner = model()
    limit = learning_rate(
        learner, steps, AtOnce(games, chunk, learner.observation_space), 2 * chunk
    )
    seconds = actors * chunk * games / (1.5 * limit)
    with patch("sb3_ext.cluster.collector.Actor", SimulatedActor):
        collector = RayCollector(
            ENV_ID,
            {"seconds": seconds},
            actors=actors,
            chunk=chunk,
            max_staleness=10**9,
            actor_cpus=0.01,
            timeout_s=600.0,
        )
        # Those that start later than others begin later.
        skipped = chunk * (actors + 4)
        reached = learning_rate(model(), steps + skipped, collector, skipped)
    counted = collector.statistics
    share = counted["waiting_seconds"] / counted["received"]
    print(
        f"{actors:4} actors, {'with' if updates else 'without'} updates: {reached:,.0f}"
        f" transitions/s, {reached / limit:.2f} of the limit ({limit:,.0f}),"
        f" {share * 1e3:.1f} ms waiting a chunk",
        flush=True,
    )


def time_path(games: int, chunk: int, repeats: int) -> None:
    """Prints what a chunk's path takes."""
    import ray

    model = make_model(games)
    plan = ActorPlan(
        env=vector_env_maker(ENV_ID),
        games=games,
        chunk=chunk,
        seed=0,
        explorer=model.explorer_elsewhere(),
        mask_source=model.legal_actions.source,
        observation_space=model.observation_space,
        action_space=model.action_space,
    )
    weights = {name: value.numpy() for name, value in model.q_net.state_dict().items()}
    sent, _ = Actor(plan, ENV_KWARGS).collect(0, 0, 0, weights, None, None)
    buffer: Any = model.replay_buffer
    buffer.allocate()
    for field in buffer._fields.values():  # pages that were never written cost more
        field.zero_()
    put, rest = [], []
    for _ in range(repeats):
        began = time.perf_counter()
        reference = ray.put(sent)
        put.append(time.perf_counter() - began)
        for step in blocks(ray.get(reference).steps, games):
            o, a, r, terminated, truncated, reached, legal, _ = step.on(buffer.device)
            buffer.add_batch(o, reached, a, r, terminated, truncated, legal, steps=chunk)
        rest.append(time.perf_counter() - began - put[-1])
    seconds = statistics.median(a + b for a, b in zip(put, rest, strict=True))
    stored = chunk * games * buffer.bytes_per_transition
    size = sum(
        each.nbytes
        for value in sent.steps
        for each in entries_of(value).values()
        if value is not None
    )
    print(
        f"a chunk: {size / 1e6:.2f} MB sent, {stored / 1e6:.2f} MB stored;"
        f" put {statistics.median(put) * 1e3:.1f} ms, get and store"
        f" {statistics.median(rest) * 1e3:.1f} ms; {size / seconds / 1e9:.2f} GB/s sent,"
        f" {stored / seconds / 1e9:.2f} GB/s stored",
        flush=True,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--games", type=int, default=1024)
    parser.add_argument("--chunk", type=int, default=16)
    parser.add_argument("--steps", type=int, default=192)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--simulated", type=int, nargs="+", metavar="ACTORS", default=())
    args = parser.parse_args(arguments)
    torch.set_num_threads(1)
    import ray

    ray.init("local", include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        for actors in args.simulated:
            for updates in (True, False):
                steps = args.steps if updates else 10 * args.steps
                simulate(args.games, args.chunk, steps, actors, updates)
        if args.simulated:
            return
        for _ in range(args.rounds):
            time_path(args.games, args.chunk, repeats=40)
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
