"""What is said of numba's steps alone: what is not compiled, changes on the way, held results."""

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest
import torch

import resgym
from tests.resgym.envs.helpers import HOST, make_vec
from tests.resgym.kernels.steps import pair, reset_both, step_both

pytest.importorskip("numba")


class Mine(type(resgym.make_agent("choose_first"))):
    """Says nothing about being compiled, and chooses something else."""

    def act(self, state, coords, rng):
        return coords.shape[1] - 1 - coords.flip(1).to(torch.uint8).argmax(1)


def test_opponents_and_settings_may_change():
    envs = pair(HOST)
    reset_both(envs, seed=1)
    changes = [
        lambda env: env.set_opponent("choose_last"),
        lambda env: env.set_opponent(Mine()),
        lambda env: setattr(env, "reward", "step"),
        lambda env: env.set_opponent("random"),
        lambda env: setattr(env, "plan", replace(env.plan, max_episode_steps=3)),
    ]
    for step in range(50):
        if step % 10 == 0:
            for env in envs:
                changes[step // 10](env)
        step_both(envs, step)


def test_large_results_that_are_still_held_are_never_written_again():
    env = make_vec(HOST, 3000, backend="numba", opponent="random")
    first, _ = env.reset(seed=0)
    actions = torch.zeros(3000, dtype=torch.int64)
    held = [first, env.games.points]
    copies = [first.clone(), env.games.points.clone()]
    for _ in range(12):
        observation, _, _, _, info = env.step(actions)
        row = observation[1]  # a view keeps the whole alive
        kept = [row, info.get("final_obs", row).numpy(), env.games.points]
        held += kept
        copies += [torch.as_tensor(value).clone() for value in kept]
    for value, copy in zip(held, copies, strict=True):
        assert torch.equal(torch.as_tensor(value), copy)


def test_nothing_keeps_the_starts_of_an_environment_that_is_gone():
    starts = np.array([[[4, 0, 0], [0, 4, 0], [0, 0, 4]]])
    env = make_vec(HOST, 2, backend="numba", opponent="random", starts=starts)
    env.reset(seed=0)
    env.step(torch.zeros(2, dtype=torch.int64))
    plan = weakref.ref(env.unwrapped.plan)
    assert torch.equal(plan().starts.points[0, :3], torch.from_numpy(starts[0]))
    del env
    gc.collect()
    assert plan() is None
