"""The look at the games of an environment: right whenever it is taken, and never written to."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

from tests.resgym.envs.helpers import HOST, IDS

pytest.importorskip("numba")


def make(env_id: str, backend: str) -> Any:
    env: Any = gymnasium.make(env_id, backend=backend, disable_env_checker=True).unwrapped
    env.reset(seed=5)
    return env


@pytest.mark.parametrize("env_id", IDS)
def test_what_is_seen_now_and_then_is_that_of_the_reference_and_stays(env_id: str) -> None:
    """Compiled steps use memory again that nobody has seen."""
    fast, slow = make(env_id, "numba"), make(env_id, "torch")
    random = np.random.default_rng(0)
    kept: list[tuple[torch.Tensor, torch.Tensor]] = []
    for step in range(300):
        legal = slow.action_masks().nonzero()[0]
        action = random.choice(legal)
        results = [env.step(action) for env in (fast, slow)]
        assert results[0][1] == results[1][1]
        if results[0][2] or results[0][3]:
            for env in (fast, slow):
                env.reset()
        if random.random() < 0.2:
            *tensors, rule = slow.games
            assert fast.games.rule is rule
            for name, found, value in zip(slow.games._fields, fast.games, tensors, strict=False):
                assert torch.equal(found, value), f"step {step}: {name}"
                assert found.dtype == value.dtype
            kept += [(value, value.clone()) for value in fast.games[:-1]]
    assert len(kept) > 200
    assert all(torch.equal(value, before) for value, before in kept)


@pytest.mark.parametrize("way", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_copies_go_their_own_way(way: Any) -> None:
    env, third = make(HOST, "numba").vector_env, make(HOST, "numba").vector_env
    twin = way(env)
    twin.step(np.array([2]))
    for action in (0, 1):
        results = [each.step(np.array([action])) for each in (env, third)]
        assert np.array_equal(results[0][0], results[1][0])
        if results[0][2][0]:
            break
