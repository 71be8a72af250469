"""The tensor replay buffer: by hand, against a plain-Python ring, and against SB3's own buffers."""

import copy
import math
import pickle
from typing import NamedTuple

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.vec_env import VecNormalize

from resgym.game import devices
from sb3_ext.adapter import TensorVecEnv
from sb3_ext.adapter.seam import each_entry, entries_of
from sb3_ext.replay.buffers import TensorReplayBuffer
from tests.fakes import ToyVectorEnv
from tests.sb3_ext.replay.helpers import NUMBER, add_numbers, assert_same, make, play


class Step(NamedTuple):
    obs: float
    next_obs: float
    reward: float
    terminated: bool
    truncated: bool
    cut: bool


def reference_sample(history, age, row, n_steps, gamma):
    """obs, next_obs, return, done, discount; `history` has the steps in use, oldest first."""
    total = 0.0
    discount = 1.0
    for offset in range(n_steps):
        step = history[age + offset][row]
        total += discount * step.reward
        discount *= gamma
        newest = age + offset + 1 == len(history)
        if step.terminated or step.truncated or step.cut or newest:
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
def test_every_transition_as_in_plain_python(seed, slots, rows, added, n_steps, gamma):
    generator = np.random.default_rng(seed)
    buffer = make(rows=rows, slots=slots, space=NUMBER, n_steps=n_steps, gamma=gamma)
    for _ in range(slots):  # what is newer than the newest may hold anything
        add_numbers(buffer, [0.0] * rows, [0.0] * rows, [math.nan] * rows)
    buffer.reset()
    history = []
    for _ in range(added):
        obs, next_obs = generator.integers(1000, size=(2, rows)).astype(float)
        if history:  # most rows go on from where they were
            reached = [step.next_obs for step in history[-1]]
            obs = np.where(generator.random(rows) < 0.7, reached, obs)
        terminated, truncated = generator.random((2, rows)) < 0.2
        rewards = generator.integers(-3, 4, size=rows).astype(float)
        columns = (obs, next_obs, rewards, terminated, truncated)
        if seed % 2:
            add_numbers(buffer, *(column.tolist() for column in columns))
        else:  # SB3's own door, where an end by the limit is told in the infos
            infos = [{"TimeLimit.truncated": bool(t)} for t in truncated & ~terminated]
            shown = (obs[:, None], next_obs[:, None])
            actions = np.arange(rows) % 5
            buffer.add(*shown, actions, rewards, terminated | truncated, infos)
            if history:  # the others were reset
                history[-1] = [
                    step._replace(cut=step.cut or step.next_obs != now)
                    for step, now in zip(history[-1], obs, strict=True)
                ]
        cut = bool(generator.random() < 0.1)
        if cut:
            buffer.cut()
        history.append([Step(*(column[row] for column in columns), cut) for row in range(rows)])
    history = history[-slots:]
    assert buffer.num_transitions == len(history) * rows
    oldest = buffer.pos if buffer.full else 0
    index = []
    expected = []
    for age in range(len(history)):
        for row in range(rows):
            index.append((oldest + age) % slots * rows + row)
            expected.append(reference_sample(history, age, row, n_steps, gamma))
    seen = buffer._get_samples(torch.tensor(index))
    names = ("observations", "next_observations", "rewards", "dones", "discounts")
    for name, column in zip(names, zip(*expected, strict=True), strict=True):
        found = getattr(seen, name)[:, 0]
        np.testing.assert_allclose(found, column, rtol=1e-6, atol=1e-6, err_msg=name)


def test_memory_is_stated_before_it_is_taken(monkeypatch):
    buffer = make(rows=10, slots=1000)
    observation = 3 * 2 * 4 + 4
    assert buffer.bytes_per_transition == 2 * observation + 8 + 4 + 1 + 1
    monkeypatch.setattr(devices, "available_bytes", lambda device: 100_000)
    message = r"buffer_size: 10000 .* 70 bytes need 0.7 MiB, but 0.1 MiB .*; at most 1428 fit"
    with pytest.raises(ValueError, match=message):
        buffer.allocate()
    monkeypatch.setattr(devices, "available_bytes", lambda device: None)
    buffer.allocate()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_nothing_waits_on_cuda_and_the_same_is_drawn_as_on_the_cpu():
    buffers = [make(n_steps=3, gamma=0.9) for _ in "ab"]
    buffers[1].device = "cuda"
    steps = play(3, 30, np.random.default_rng(0))
    on_cuda = [[each_entry(lambda x: x.to("cuda"), value) for value in step] for step in steps]
    buffers[1].allocate()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for step in on_cuda:
            buffers[1].add_batch(*step)
            buffers[1].sample(64)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    for step in steps:
        buffers[0].add_batch(*step)
        buffers[0].sample(64)
    again = pickle.loads(pickle.dumps(buffers[1]))
    assert again.device.type == "cpu"
    assert_same(again.sample(9), buffers[0].sample(9))


@pytest.mark.parametrize("n_steps", [1, 3])
@pytest.mark.parametrize("dict_obs", [False, True])
def test_normalised_like_sb3(dict_obs, n_steps):
    keys = ["progress"] if dict_obs else None
    toy = TensorVecEnv(ToyVectorEnv(8, dict_obs))
    env = VecNormalize(toy, norm_obs_keys=keys, clip_obs=1.5, clip_reward=0.7)
    env.seed(0)
    env.reset()
    for _ in range(20):
        env.step(np.zeros(8, dtype=int))
    arguments = (100, toy.observation_space, toy.action_space)
    buffer = TensorReplayBuffer(*arguments, device="cpu", n_envs=8, n_steps=n_steps, gamma=1.0)
    obs = env.get_original_obs()
    buffer.add(obs, obs, np.zeros(8), env.get_original_reward(), np.zeros(8), [{}] * 8)
    index = torch.arange(8)
    plain = buffer._get_samples(index)
    seen = buffer._get_samples(index, env)
    for name in ("observations", "next_observations"):
        original = each_entry(torch.Tensor.numpy, getattr(plain, name))
        expected = entries_of(env.normalize_obs(original))
        for key, value in entries_of(getattr(seen, name)).items():
            np.testing.assert_allclose(value, expected[key], rtol=1e-6)
            assert value.numpy().dtype == expected[key].dtype
    np.testing.assert_allclose(seen.rewards, env.normalize_reward(plain.rewards.numpy()), rtol=1e-6)
    assert not torch.equal(seen.rewards, plain.rewards)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda fields: fields["observations"].update(points=torch.zeros(4, 3, 2, 2)),
            r"got .*\(4, 3, 2, 2\).*need .*\(4, 3, 3, 2\)",
        ),
        (
            lambda fields: fields.update(rewards=fields["rewards"].double()),
            r"got .*float64.*need .*float32",
        ),
    ],
)
def test_a_state_that_does_not_fit_is_refused(spoil, message):
    buffer = make()
    for step in play(3, 4, np.random.default_rng(3)):
        buffer.add_batch(*step)
    before, state = (copy.deepcopy(buffer.state_dict()) for _ in "ab")
    spoil(state["fields"])
    with pytest.raises(ValueError, match=message):
        buffer.load_state_dict(state)
    assert_same(buffer.state_dict(), before)


def test_bad_transitions_store_nothing():
    buffer = make(rows=2, space=NUMBER, n_steps=2, gamma=0.5)
    with pytest.raises(ValueError, match="sample: the buffer is empty"):
        buffer.sample(1)
    add_numbers(buffer, [0, 1], [2, 3], [0, 0])
    before = copy.deepcopy(buffer.state_dict())
    for transitions, message in (
        (([0, 1, 2], [1, 2, 3], [0, 0, 0]), r"observations: got shape \(3, 1\), need \(2, 1\)"),
        (([0, 1], [1, 2], [0, 0, 0]), r"rewards: got shape \(3,\), need \(2,\)"),
        (([0, 1], [1, 2], [0, 0], None, None, torch.ones(2, 5) > 0), "next_legal"),
    ):
        with pytest.raises(ValueError, match=message):
            add_numbers(buffer, *transitions)
    assert_same(buffer.state_dict(), before)


def test_actions_of_any_shape_are_kept_as_by_sb3():
    """A row for each; and all attributes are those of SB3's buffer."""
    push = spaces.Box(-1, 1, (2, 2), np.float32)
    arguments = {"device": "cpu", "n_envs": 2}
    both = [kind(50, NUMBER, push, **arguments) for kind in (ReplayBuffer, TensorReplayBuffer)]
    rng = np.random.default_rng(0)
    for _ in range(30):  # more than fit
        seen, reached = rng.normal(size=(2, 2, 1)).astype(np.float32)
        actions = rng.random((2, 2, 2), np.float32)
        rewards = rng.random(2, np.float32)
        ends, cut = rng.random((2, 2)) < 0.3
        infos = [{"TimeLimit.truncated": each} for each in ends & cut]
        for buffer in both:
            buffer.add(seen, reached, actions, rewards, ends, infos)
    theirs, ours = both
    for name in ("observations", "next_observations", "actions", "rewards", "dones", "timeouts"):
        found = getattr(ours, name)
        expected = getattr(theirs, name)
        assert found.dtype == expected.dtype
        assert np.array_equal(found, expected), name
    assert ours.dones.sum() > ours.timeouts.sum() > 0
    assert ours.sample(4).actions.shape == theirs.sample(4).actions.shape == (4, 4)


def test_a_timeout_ends_like_a_termination_if_it_is_not_handled():
    for handled in (True, False):
        buffer = make(rows=2, space=NUMBER, handle_timeout_termination=handled)
        add_numbers(buffer, [1.0, 2.0], [3.0, 4.0], [0.0, 0.0], truncated=[True, False])
        batch = buffer.sample(64)
        cut = batch.observations[:, 0] == 1.0
        assert batch.dones[cut].unique().tolist() == [float(not handled)]
        assert batch.dones[~cut].unique().tolist() == [0.0]
