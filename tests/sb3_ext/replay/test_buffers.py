"""The tensor replay buffer: by hand, against a plain-Python ring, and against SB3's own buffers."""

from __future__ import annotations

import math
import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st
from stable_baselines3.common.buffers import NStepReplayBuffer, ReplayBuffer
from stable_baselines3.common.vec_env import VecNormalize

from resgym.game import devices
from sb3_ext.adapter import TensorVecEnv, reached_observation
from sb3_ext.adapter.observations import each_entry, entries_of
from sb3_ext.replay.buffers import TensorReplayBuffer
from sb3_ext.replay.samples import n_step_return
from tests.fakes import ToyVectorEnv, forbid_waiting
from tests.sb3_ext.replay.helpers import PAIR, assert_same, filled

NUMBER = spaces.Box(-np.inf, np.inf, (1,), np.float32)


def number_buffer(slots: int, rows: int, **kwargs: Any) -> TensorReplayBuffer:
    return TensorReplayBuffer(
        slots * rows, NUMBER, spaces.Discrete(5), device="cpu", n_envs=rows, **kwargs
    )


def add_numbers(
    buffer: TensorReplayBuffer,
    obs: list[float],
    next_obs: list[float],
    rewards: list[float],
    terminated: list[bool] | None = None,
    truncated: list[bool] | None = None,
) -> None:
    never = [False] * len(obs)
    buffer.add_batch(
        torch.tensor(obs)[:, None],
        torch.tensor(next_obs)[:, None],
        torch.arange(len(obs)) % 5,
        torch.tensor(rewards),
        torch.tensor(terminated or never),
        torch.tensor(truncated or never),
    )


def read(buffer: TensorReplayBuffer, *index: int) -> dict[str, list[float]]:
    """Transitions by flat index slot * rows + row."""
    samples = buffer._get_samples(torch.tensor(index))
    return {
        name: value[:, 0].tolist()
        for name, value in samples._asdict().items()
        if isinstance(value, torch.Tensor)
    }


# ----------------------------------------------------------------------- by hand


def test_three_step_returns_by_hand() -> None:
    """Two rows that end at different times: one terminates, one is truncated."""
    buffer = number_buffer(8, 2, n_steps=3, gamma=0.5)
    add_numbers(buffer, [0, 100], [1, 101], [1, 10])
    add_numbers(buffer, [1, 101], [2, 102], [2, 20], terminated=[False, True])
    add_numbers(buffer, [2, 200], [3, 201], [4, 40], truncated=[True, False])
    add_numbers(buffer, [300, 201], [301, 202], [8, 80])
    add_numbers(buffer, [301, 202], [302, 203], [16, 160])
    left = read(buffer, *range(0, 10, 2))
    assert left["observations"] == [0, 1, 2, 300, 301]
    assert left["rewards"] == [1 + 1 + 1, 2 + 2, 4, 8 + 8, 16]
    assert left["discounts"] == [0.125, 0.25, 0.5, 0.25, 0.5]
    # Truncated at slot 2: bootstrap from the final observation 3, and dones stays 0.
    assert left["next_observations"] == [3, 3, 3, 302, 302]
    assert left["dones"] == [0, 0, 0, 0, 0]
    right = read(buffer, *range(1, 10, 2))
    assert right["rewards"] == [10 + 10, 20, 40 + 40 + 40, 80 + 80, 160]
    assert right["discounts"] == [0.25, 0.5, 0.125, 0.25, 0.5]
    assert right["next_observations"] == [102, 102, 203, 203, 203]
    assert right["dones"] == [1, 1, 0, 0, 0]
    assert right["actions"] == [1] * 5


def test_one_step_is_the_transition() -> None:
    buffer = number_buffer(4, 2)
    add_numbers(buffer, [0, 10], [1, 11], [1, 2], terminated=[True, False], truncated=[True, True])
    samples = buffer._get_samples(torch.tensor([0, 1]))
    assert samples.rewards.tolist() == [[1], [2]]
    assert samples.dones.tolist() == [[1], [0]]  # terminated counts, truncated does not
    assert samples.discounts is None
    assert samples.next_legal is None
    given = number_buffer(4, 2, gamma=0.75)
    add_numbers(given, [0, 10], [1, 11], [1, 2])
    assert read(given, 0, 1)["discounts"] == [0.75, 0.75]


def test_truncation_as_termination() -> None:
    buffer = number_buffer(4, 1, handle_timeout_termination=False)
    add_numbers(buffer, [0], [1], [1], truncated=[True])
    assert read(buffer, 0)["dones"] == [1]


def test_legal_actions_come_from_the_end_of_the_window() -> None:
    buffer = TensorReplayBuffer(
        6, NUMBER, spaces.Discrete(3), device="cpu", n_steps=2, gamma=0.5, store_next_legal=True
    )
    never = torch.tensor([False])
    for step in range(3):
        number = torch.tensor([[float(step)]])
        legal = torch.arange(3)[None] == step
        buffer.add_batch(number, number + 1, never.long(), never.float(), never, never, legal)
    samples = buffer._get_samples(torch.arange(3))
    assert samples.next_legal.dtype == torch.bool
    assert samples.next_legal.int().argmax(dim=1).tolist() == [1, 2, 2]
    with pytest.raises(ValueError, match="next_legal: got none, the buffer has store_next_legal=T"):
        buffer.add_batch(number, number + 1, never.long(), never.float(), never, never)
    plain = number_buffer(3, 1)
    with pytest.raises(ValueError, match="next_legal: got a mask, the buffer"):
        plain.add_batch(number, number, never.long(), never.float(), never, never, legal)


def test_what_is_newer_than_the_newest_does_not_count() -> None:
    """Memory that was not written yet may hold anything."""
    rewards = torch.tensor([[1.0, math.nan, math.inf], [1.0, 2.0, math.nan], [1.0, 2.0, 4.0]])
    ended = torch.tensor([[False, True, False], [False, False, True], [False, False, False]])
    returns, _, length = n_step_return(rewards, ended, torch.tensor([0, 1, 2]), gamma=0.5)
    assert returns.tolist() == [1.0, 2.0, 3.0]
    assert length.tolist() == [1, 2, 3]


# ----------------------------------------------------------------------- against plain Python


class Step(NamedTuple):
    obs: float
    next_obs: float
    reward: float
    terminated: bool
    truncated: bool


def reference_sample(
    history: list[list[Step]], age: int, row: int, n_steps: int, gamma: float
) -> tuple[float, float, float, float, float]:
    """obs, next_obs, return, done, discount; `history` has the steps in use, oldest first."""
    total, discount = 0.0, 1.0
    for offset in range(n_steps):
        step = history[age + offset][row]
        total += discount * step.reward
        discount *= gamma
        newest = age + offset + 1 == len(history)
        if step.terminated or step.truncated or newest:
            break
        if history[age + offset + 1][row].obs != step.next_obs:
            break
    return history[age][row].obs, step.next_obs, total, float(step.terminated), discount


@given(
    seed=st.integers(0, 2**31),
    slots=st.integers(1, 7),
    rows=st.integers(1, 4),
    added=st.integers(1, 20),
    n_steps=st.integers(1, 5),
    gamma=st.sampled_from([0.0, 0.5, 0.9, 1.0]),
)
def test_every_transition_as_in_plain_python(
    seed: int, slots: int, rows: int, added: int, n_steps: int, gamma: float
) -> None:
    generator = np.random.default_rng(seed)
    buffer = number_buffer(slots, rows, n_steps=n_steps, gamma=gamma)
    history: list[list[Step]] = []
    obs = generator.integers(1000, size=rows).astype(float)
    for _ in range(added):
        next_obs = generator.integers(1000, size=rows).astype(float)
        terminated, truncated = generator.random((2, rows)) < 0.2
        rewards = generator.integers(-3, 4, size=rows).astype(float)
        add_numbers(
            buffer,
            obs.tolist(),
            next_obs.tolist(),
            rewards.tolist(),
            terminated.tolist(),
            truncated.tolist(),
        )
        columns = (obs, next_obs, rewards, terminated, truncated)
        history.append([Step(*(column[row] for column in columns)) for row in range(rows)])
        fresh = generator.integers(1000, size=rows).astype(float)
        outside = generator.random(rows) < 0.1
        obs = np.where(terminated | truncated | outside, fresh, next_obs)
    history = history[-slots:]
    assert buffer.num_transitions == len(history) * rows
    oldest = buffer.pos if buffer.full else 0
    index, expected = [], []
    for age in range(len(history)):
        for row in range(rows):
            index.append((oldest + age) % slots * rows + row)
            expected.append(reference_sample(history, age, row, n_steps, gamma))
    seen = read(buffer, *index)
    names = ("observations", "next_observations", "rewards", "dones", "discounts")
    for name, column in zip(names, zip(*expected, strict=True), strict=True):
        np.testing.assert_allclose(seen[name], column, rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("n_steps", [1, 3])
@pytest.mark.parametrize("added", [5, 23])
def test_the_same_as_sb3s_buffer(n_steps: int, added: int, monkeypatch: Any) -> None:
    """Filled through SB3's own door; every transition, with ends of both kinds."""
    slots, rows = 8, 3
    ours = number_buffer(slots, rows, n_steps=n_steps, gamma=0.9)
    arguments = (slots * rows, NUMBER, spaces.Discrete(5), "cpu", rows)
    theirs = (
        ReplayBuffer(*arguments)
        if n_steps == 1
        else NStepReplayBuffer(*arguments, n_steps=n_steps, gamma=0.9)
    )
    generator = np.random.default_rng(1)
    obs = generator.normal(size=(rows, 1)).astype(np.float32)
    for _ in range(added):
        next_obs = generator.normal(size=(rows, 1)).astype(np.float32)
        done, timeout = generator.random((2, rows)) < 0.4
        timeout &= done
        infos = [{"TimeLimit.truncated": True} if each else {} for each in timeout]
        action, reward = generator.integers(5, size=rows), generator.normal(size=rows)
        for buffer in (ours, theirs):
            buffer.add(obs, next_obs, action, reward, done, infos)
        obs = np.where(done[:, None], generator.normal(size=(rows, 1)), next_obs)
        obs = obs.astype(np.float32)
    stored = min(added, slots)
    for row in range(rows):
        monkeypatch.setattr(np.random, "randint", lambda *_, row=row, **__: np.full(stored, row))
        expected = theirs._get_samples(np.arange(stored))
        seen = ours._get_samples(torch.arange(stored) * rows + row)
        for name in ("observations", "actions", "next_observations", "dones", "rewards"):
            left, right = getattr(seen, name), getattr(expected, name)
            torch.testing.assert_close(left, right.to(left.dtype), rtol=1e-6, atol=1e-6)
            assert left.shape == right.shape
        if n_steps > 1:
            torch.testing.assert_close(seen.discounts, expected.discounts)


# ----------------------------------------------------------------------- storage


def test_dtypes_and_shapes_are_kept() -> None:
    buffer = filled(n_steps=2, gamma=0.9)
    samples = buffer.sample(17)
    for observation in (samples.observations, samples.next_observations):
        assert observation["points"].shape == (17, 3, 2)
        assert observation["points"].dtype == torch.float32
        assert observation["coords"].shape == (17, 4)
        assert observation["coords"].dtype == torch.int8
    for name in ("rewards", "dones", "discounts"):
        assert getattr(samples, name).shape == (17, 1)
        assert getattr(samples, name).dtype == torch.float32
    assert samples.actions.shape == (17, 1)
    assert samples.actions.dtype == torch.int64
    assert isinstance(buffer, ReplayBuffer)


@pytest.mark.parametrize(
    ("space", "dtype", "stored"),
    [
        (spaces.Discrete(128), torch.int64, torch.int8),
        (spaces.Discrete(129), torch.int64, torch.int16),
        (spaces.Discrete(1013), torch.int64, torch.int16),
        (spaces.Discrete(40_000), torch.int64, torch.int32),
        (spaces.Box(-1, 1, (2,), np.float64), torch.float32, torch.float32),
        (spaces.MultiDiscrete([3, 4]), torch.int64, torch.int64),
    ],
)
def test_actions_are_stored_small_and_returned_whole(space: Any, dtype: Any, stored: Any) -> None:
    buffer = TensorReplayBuffer(4, NUMBER, space, device="cpu")
    largest = space.n - 1 if isinstance(space, spaces.Discrete) else space.sample()
    number = np.zeros((1, 1), dtype=np.float32)
    buffer.add(number, number, np.asarray([largest]), np.zeros(1), np.zeros(1), [{}])
    assert buffer.state_dict()[0]["actions"].dtype == stored
    seen = buffer.sample(1).actions
    assert seen.dtype == dtype
    np.testing.assert_allclose(seen[0].numpy(), np.atleast_1d(largest), rtol=1e-6)


def test_discrete_observations() -> None:
    buffer = TensorReplayBuffer(6, spaces.Discrete(9), spaces.Discrete(2), device="cpu", n_envs=2)
    buffer.add(np.array([3, 4]), np.array([4, 5]), np.zeros(2), np.zeros(2), np.zeros(2), [{}, {}])
    samples = buffer._get_samples(torch.arange(2))
    assert samples.observations.tolist() == [[3], [4]]
    assert samples.next_observations.tolist() == [[4], [5]]
    assert samples.observations.dtype == torch.int64


def test_both_doors_store_the_same() -> None:
    tensors, arrays = number_buffer(3, 2), number_buffer(3, 2)
    add_numbers(tensors, [0, 1], [2, 3], [4, 5], [True, False], [False, True])
    arrays.add(
        np.array([[0.0], [1.0]]),
        np.array([[2.0], [3.0]]),
        np.array([[0], [1]]),
        np.array([4.0, 5.0]),
        np.array([True, True]),
        [{"TimeLimit.truncated": False}, {"TimeLimit.truncated": True}],
    )
    for name, value in tensors.state_dict()[0].items():
        assert torch.equal(value, arrays.state_dict()[0][name]), name


def test_what_was_added_is_a_copy() -> None:
    buffer = number_buffer(3, 1)
    number = torch.zeros(1, 1)
    never = torch.tensor([False])
    buffer.add_batch(number, number, never.long(), never.float(), never, never)
    number += 7
    assert read(buffer, 0)["observations"] == [0]


@pytest.mark.parametrize(("asked", "rows", "slots"), [(10, 3, 3), (9, 3, 3), (2, 3, 1), (1, 1, 1)])
def test_capacity_is_in_transitions(asked: int, rows: int, slots: int) -> None:
    buffer = TensorReplayBuffer(asked, NUMBER, spaces.Discrete(2), device="cpu", n_envs=rows)
    assert buffer.buffer_size == slots
    assert buffer.memory_bytes() == slots * rows * buffer.bytes_per_transition


# ----------------------------------------------------------------------- memory and devices


def test_memory_is_stated_before_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = TensorReplayBuffer(10_000, PAIR, spaces.Discrete(4), device="cpu", n_envs=10)
    observation = 3 * 2 * 4 + 4
    assert buffer.bytes_per_transition == 2 * observation + 1 + 4 + 1 + 1
    assert buffer.memory_bytes() == 10_000 * buffer.bytes_per_transition
    assert buffer.state_dict()[0] == {}
    monkeypatch.setattr(devices, "available_bytes", lambda device: 100_000)
    message = (
        r"buffer_size: 10000 transitions of 63 bytes need 615.23 KiB, but 97.66 KiB are available"
        r" on cpu; at most 1587 fit"
    )
    with pytest.raises(ValueError, match=message):
        buffer.allocate()
    assert buffer.state_dict()[0] == {}
    monkeypatch.setattr(devices, "available_bytes", lambda device: None)
    buffer.allocate()
    tensors = buffer._store.fields.values()
    assert sum(tensor.nbytes for tensor in tensors) == buffer.memory_bytes()


def test_a_huge_buffer_can_be_made_and_is_refused_at_the_first_transition() -> None:
    buffer = number_buffer(10**12, 1)
    with pytest.raises(ValueError, match=r"buffer_size: 1000000000000 transitions .* TiB"):
        add_numbers(buffer, [0], [1], [0])
    assert buffer.num_transitions == 0


def test_what_is_stored_follows_the_device() -> None:
    buffer = filled()
    assert buffer.device == torch.device("cpu")
    buffer.device = "meta"
    assert buffer.device == torch.device("meta")
    fields, _ = buffer.state_dict()
    assert {value.device for value in fields.values()} == {torch.device("meta")}


def test_the_number_of_a_device_is_kept() -> None:
    buffer = number_buffer(2, 1)
    buffer.device = "meta:1"
    assert buffer.device.index == 1


@pytest.mark.parametrize("shared", [False, True])
def test_adding_and_sampling_never_wait(shared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"optimize_memory_usage": shared, "final_share": 1.0, "n_steps": 3, "gamma": 0.9}
    buffer = filled(**options)
    reached = {key: value.clone() for key, value in buffer.sample(3).observations.items()}
    actions, flags = torch.zeros(3, dtype=torch.int64), torch.zeros(3, dtype=torch.bool)
    forbid_waiting(monkeypatch)
    for _ in range(7):
        buffer.add_batch(reached, reached, actions, flags.float(), flags, flags)
        buffer.sample(16)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_nothing_waits_on_cuda_and_a_pickle_needs_no_cuda() -> None:
    env = TensorVecEnv(ToyVectorEnv(5, dict_obs=True, device="cuda"))
    env.seed(1)
    obs = env.reset_tensors()
    buffer = TensorReplayBuffer(
        100, env.observation_space, env.action_space, "cuda", n_envs=5, n_steps=3, gamma=0.9
    )
    buffer.allocate()
    actions = torch.zeros(5, dtype=torch.int64, device="cuda")
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(30):
            next_obs, rewards, terminated, truncated, info = env.step_tensors(actions)
            reached = reached_observation(next_obs, info)
            buffer.add_batch(obs, reached, actions, rewards, terminated, truncated)
            samples = buffer.sample(64)
            obs = next_obs
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert samples.rewards.device.type == "cuda"
    restored = pickle.loads(pickle.dumps(buffer))
    assert restored.device.type == "cpu"
    restored.device = "cuda"
    assert_same(buffer.sample(9), restored.sample(9))


# ----------------------------------------------------------------------- sampling


def test_sampling_is_the_buffers_own_sequence() -> None:
    one, two = filled(seed=5), filled(seed=5)
    torch.manual_seed(0)
    np.random.seed(0)
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    first = one.sample(8)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()
    torch.manual_seed(1)
    assert_same(first, two.sample(8))
    second = one.sample(8)
    assert not torch.equal(first.rewards, second.rewards)
    one.set_seed(5)
    assert_same(first, one.sample(8))
    assert not torch.equal(filled(seed=6).sample(8).rewards, first.rewards)


def test_sampling_is_uniform_over_what_is_stored() -> None:
    buffer = number_buffer(100, 2)
    for step in range(5):
        add_numbers(buffer, [step, step + 50], [0, 0], [0, 0])
    draws = torch.cat([buffer.sample(100).observations for _ in range(200)]).int()
    values, counts = draws.unique(return_counts=True)
    assert values.tolist() == [0, 1, 2, 3, 4, 50, 51, 52, 53, 54]
    # 20,000 draws: the standard deviation of a count is 42.
    assert int((counts - 2000).abs().max()) < 5 * 42


@pytest.mark.parametrize("n_steps", [1, 3])
@pytest.mark.parametrize("dict_obs", [False, True])
def test_normalised_like_sb3(dict_obs: bool, n_steps: int) -> None:
    keys = ["progress"] if dict_obs else None
    toy = TensorVecEnv(ToyVectorEnv(8, dict_obs))
    env = VecNormalize(toy, norm_obs_keys=keys, clip_obs=1.5, clip_reward=0.7)
    env.seed(0)
    env.reset()
    for _ in range(20):
        env.step(np.zeros(8, dtype=int))
    arguments = (100, toy.observation_space, toy.action_space)
    buffer = TensorReplayBuffer(*arguments, device="cpu", n_envs=8, n_steps=n_steps, gamma=1.0)
    obs, reward = env.get_original_obs(), env.get_original_reward()
    buffer.add(obs, obs, np.zeros(8), reward, np.zeros(8), [{}] * 8)
    index = torch.arange(8)
    plain, seen = buffer._get_samples(index), buffer._get_samples(index, env)
    for name in ("observations", "next_observations"):
        original = each_entry(torch.Tensor.numpy, getattr(plain, name))
        expected = entries_of(env.normalize_obs(original))
        for key, value in entries_of(getattr(seen, name)).items():
            np.testing.assert_allclose(value, expected[key], rtol=1e-6)
            assert value.numpy().dtype == expected[key].dtype
    np.testing.assert_allclose(seen.rewards, env.normalize_reward(plain.rewards.numpy()), rtol=1e-6)
    assert not torch.equal(seen.rewards, plain.rewards)


# ----------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"buffer_size": 0}, "buffer_size must be a whole number of at least 1, got 0"),
        ({"n_envs": 0}, "n_envs must be a whole number of at least 1"),
        ({"n_steps": 0, "gamma": 0.9}, "n_steps must be a whole number of at least 1"),
        ({"n_steps": 2}, "gamma: got None, n_steps=2 needs a number"),
        ({"gamma": 1.5}, r"gamma must lie in \[0, 1\], got 1.5"),
        ({"gamma": float("nan")}, "gamma must lie in"),
        ({"seed": -1}, "seed: got -1"),
        ({"final_share": 0}, r"final_share must lie in \(0, 1\], got 0"),
        ({"final_share": 1.5}, "final_share must lie in"),
        ({"action_space": spaces.MultiBinary(3), "store_next_legal": True}, "store_next_legal"),
        ({"observation_space": spaces.Box(0, 1, (2,), np.longdouble)}, "which PyTorch does not"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    defaults = {
        "buffer_size": 10,
        "observation_space": NUMBER,
        "action_space": spaces.Discrete(2),
        "device": "cpu",
    }
    with pytest.raises(ValueError, match=message):
        TensorReplayBuffer(**(defaults | arguments))


def test_bad_transitions_store_nothing() -> None:
    buffer = number_buffer(4, 2, n_steps=2, gamma=0.5)
    add_numbers(buffer, [0, 1], [2, 3], [0, 0])
    before = pickle.dumps(buffer)
    with pytest.raises(ValueError, match=r"observations: got shape \(3, 1\), need \(2, 1\)"):
        add_numbers(buffer, [0, 1, 2], [1, 2, 3], [0, 0, 0])
    with pytest.raises(ValueError, match=r"rewards: got shape \(3,\), need \(2,\)"):
        add_numbers(buffer, [0, 1], [1, 2], [0, 0, 0])
    flags = torch.tensor([False, False])
    number = {"points": torch.zeros(2, 1)}
    with pytest.raises(ValueError, match=r"transition: got .*'observations.points'"):
        buffer.add_batch(number, number, flags.long(), flags.float(), flags, flags)
    with pytest.raises(ValueError, match="batch_size must be a whole number"):
        buffer.sample(0)
    assert pickle.dumps(buffer) == before
