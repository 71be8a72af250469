"""Fields that a compiled step leaves as arrays: right when read, never written to afterwards."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from resgym.envs.held import HeldField, Holder, as_tensor

import resgym  # noqa: F401  registers the environments

pytest.importorskip("numba")

IDS = ("resgym/Hironaka-v0", "resgym/HironakaHost-v0", "resgym/HironakaAgent-v0")
READ = ("state", "coords", "half_moves", "episode")


def make(env_id: str, backend: str) -> Any:
    env: Any = gymnasium.make(env_id, backend=backend, disable_env_checker=True).unwrapped
    env.reset(seed=5)
    return env.vector_env


def tensors(env: Any) -> dict[str, torch.Tensor]:
    fields = {name: getattr(env.table, name) for name in READ[1:]}
    rest = {name: getattr(env, name) for name in ("_return", "_length", "_ended")}
    state = env.table.state
    key = env.table._episode_rng.key
    return {**fields, **rest, "points": state.points, "count": state.count, "key": key}


@pytest.mark.parametrize("env_id", IDS)
def test_fields_read_now_and_then_are_those_of_the_reference_and_stay(env_id: str) -> None:
    fast, slow = make(env_id, "numba"), make(env_id, "torch")
    random = np.random.default_rng(0)
    kept: list[tuple[torch.Tensor, torch.Tensor]] = []
    unread = 0
    for step in range(300):
        legal = slow.action_masks()[0].nonzero()[0]
        action = np.array([random.choice(legal)])
        results = [env.step(action) for env in (fast, slow)]
        assert np.array_equal(results[0][1], results[1][1])
        if results[0][2][0] or results[0][3][0]:
            for env in (fast, slow):
                env.reset()
        coin = random.random()
        if coin < 0.1:  # all fields
            found, expected = tensors(fast), tensors(slow)
            for name, value in expected.items():
                assert torch.equal(found[name], value), f"step {step}: {name}"
                assert found[name].dtype == value.dtype
            kept += [(value, value.clone()) for value in found.values()]
        elif coin < 0.3:  # a single one
            name = READ[int(random.integers(4))]
            value = getattr(fast.table, name)
            value = value.points if name == "state" else value
            kept.append((value, value.clone()))
        elif coin < 0.35:  # somebody replaces one
            for env in (fast, slow):
                env._length = env._length + 1
        else:
            unread += fast.holds(fast._held) and fast.table.holds(fast._held)
    assert unread > 100  # else this tests nothing: the fields were read all the time
    assert len(kept) > 200
    assert all(torch.equal(value, before) for value, before in kept)


@pytest.mark.parametrize("env_id", IDS)
def test_a_failed_reset_changes_nothing_while_fields_are_arrays(env_id: str) -> None:
    env = make(env_id, "numba")
    other = make(env_id, "numba")
    for _ in range(3):
        for each in (env, other):
            each.reset()
    assert env.holds(env._held)
    with pytest.raises(ValueError, match="points"):
        env.reset(seed=9, options={"points": [[1, 2]]})
    expected = tensors(other)
    assert all(torch.equal(value, expected[name]) for name, value in tensors(env).items())


@pytest.mark.parametrize("way", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_copies_go_their_own_way(way: Any) -> None:
    env = make(IDS[1], "numba")
    env.reset()
    twin, third = way(env), make(IDS[1], "numba")
    third.reset()
    assert env.holds(env._held)
    twin.step(np.array([2]))
    for action in (0, 1):
        results = [each.step(np.array([action]))[0] for each in (env, third)]
        assert np.array_equal(*results)
        if env._ended[0]:
            break


class Owner(Holder):
    counts: HeldField[torch.Tensor] = HeldField(lambda held: as_tensor(held.counts))


def test_reading_and_assigning_end_the_holding() -> None:
    fields: Any = type("Fields", (), {"counts": np.arange(3)})()
    owner = Owner()
    owner.hold(fields)
    assert owner.holds(fields)
    assert owner.counts.tolist() == [0, 1, 2]
    assert not owner.holds(fields)
    owner.hold(fields)
    owner.counts = torch.zeros(1)
    assert not owner.holds(fields)
    assert owner.counts.tolist() == [0]
    owner.hold(fields)
    kept = owner.snapshot()
    owner.counts = torch.zeros(1)
    owner.restore(kept)
    assert owner.counts.tolist() == [0, 1, 2]
    assert not owner.holds(fields)  # somebody may have a tensor of it
