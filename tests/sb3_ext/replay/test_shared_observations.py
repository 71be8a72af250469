"""Observations stored once: every sample equal, bit for bit, to one of a buffer that keeps both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from resgym.game import devices
from sb3_ext.adapter import TensorVecEnv, reached_observation
from sb3_ext.ddqn import DDQN
from sb3_ext.replay import shared_observations
from sb3_ext.replay.buffers import TensorReplayBuffer
from tests.fakes import ToyVectorEnv
from tests.sb3_ext.replay.helpers import (
    PAIR,
    SPACES,
    add_steps,
    assert_all_same,
    assert_same,
    bits,
    pair,
)


@settings(max_examples=120, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    kind=st.sampled_from(sorted(SPACES)),
    slots=st.integers(1, 7),
    rows=st.integers(1, 4),
    blocks=st.lists(st.integers(1, 6), min_size=1, max_size=5),
    n_steps=st.integers(1, 4),
    ends=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    share=st.sampled_from([0.01, 0.25, 1.0]),
)
def test_every_sample_is_the_same(
    seed: int, kind: str, slots: int, rows: int, blocks: list[int], n_steps: int, ends: float,
    share: float,
) -> None:  # fmt: skip
    rng = np.random.default_rng(seed)
    both, once = pair(SPACES[kind], slots, rows, share, n_steps=n_steps, gamma=0.9, seed=seed)
    seen = None
    for steps in blocks:
        seen = add_steps((both, once), steps, rng, ends, start=seen)
        assert_all_same(both, once)
        assert_same(both.sample(9), once.sample(9))


def test_the_queue_is_what_makes_them_the_same() -> None:
    """A control: with its exceptions taken away the samples differ."""
    both, once = pair(SPACES["box"], 6, 3)
    add_steps((both, once), 9, np.random.default_rng(0), ends=0.3)
    once._store.fields["reached_at"].fill_(-1)
    with pytest.raises(AssertionError):
        assert_all_same(both, once)


@pytest.mark.parametrize("n_steps", [1, 3])
def test_games_of_a_vector_environment(n_steps: int) -> None:
    """Through the adapter, with its final observations, longer than the ring is."""
    env = TensorVecEnv(ToyVectorEnv(5, horizon=4, dict_obs=True))
    env.seed(1)
    obs = env.reset_tensors()
    arguments = (60, env.observation_space, env.action_space)
    kwargs: Any = {"device": "cpu", "n_envs": 5, "n_steps": n_steps, "gamma": 0.9}
    both = TensorReplayBuffer(*arguments, **kwargs)
    once = TensorReplayBuffer(*arguments, optimize_memory_usage=True, **kwargs)
    ended = 0
    for _ in range(40):
        actions = torch.zeros(5, dtype=torch.int64)
        next_obs, rewards, terminated, truncated, info = env.step_tensors(actions)
        reached = reached_observation(next_obs, info)
        for buffer in (both, once):
            buffer.add_batch(obs, reached, actions, rewards, terminated, truncated)
        obs = next_obs
        ended += int((terminated | truncated).sum())
        assert_all_same(both, once)
    assert ended > 20
    if n_steps == 1:  # what was reached, not what is shown after the reset
        samples = both._get_samples(torch.arange(60))
        progress, reached = samples.observations["progress"], samples.next_observations["progress"]
        torch.testing.assert_close(reached, progress + 0.25)
        assert int(samples.dones.sum()) >= 5


def test_the_room_for_final_observations_grows_and_no_further_than_it_must() -> None:
    both, once = pair(SPACES["box"], 200, 4, share=0.01)
    rng = np.random.default_rng(0)
    rooms = [once._store.room]
    seen = None
    for _ in range(100):
        seen = add_steps((both, once), 9, rng, ends=0.1, outside=0.0, start=seen)
        rooms.append(once._store.room)
        assert_all_same(both, once)
    assert rooms[0] == 8
    assert rooms == sorted(rooms)
    live = int((once._store.fields["reached_at"] >= 0).sum())
    assert 100 < live < rooms[-1] < 2 * live
    assert rooms[-1] == rooms[40]  # the ring has been round by then
    assert once.memory_bytes() < both.memory_bytes()


def test_it_is_looked_at_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    _, once = pair(SPACES["box"], 640, 4)
    looks = []
    look = shared_observations.SharedObservationStore._look
    monkeypatch.setattr(
        shared_observations.SharedObservationStore,
        "_look",
        lambda self: looks.append(1) or look(self),
    )
    add_steps((once,), 1280, np.random.default_rng(0), ends=0.05, outside=0.0)
    assert 1 <= len(looks) <= 20


def test_memory_is_stated_and_halved() -> None:
    """The observation of the game with ten axes and twenty points."""
    space = spaces.Box(-1, 1, (20, 10), np.float32)
    arguments: Any = (100_000, space, spaces.Discrete(1013))
    both = TensorReplayBuffer(*arguments, device="cpu", n_envs=10)
    sizes = {}
    for share in (0.02, 0.25):
        once = TensorReplayBuffer(
            *arguments, device="cpu", n_envs=10, optimize_memory_usage=True, final_share=share
        )
        sizes[share] = once.bytes_per_transition
        assert not once.is_allocated
        once.allocate()
        assert sum(tensor.nbytes for tensor in once._store.fields.values()) == once.memory_bytes()
        assert once.memory_bytes() - 100_000 * once.bytes_per_transition == 11 * 800
    assert both.bytes_per_transition == 2 * 800 + 2 + 4 + 1 + 1
    assert sizes == {0.02: 800 + 16 + 2 + 4 + 1 + 1 + 4, 0.25: 800 + 200 + 12}
    assert once.memory_estimate().startswith(
        "Replay buffer: 100,000 transitions of 1,012 bytes, 96.52 MiB on cpu, "
    )


def test_growing_past_the_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    both, once = pair(SPACES["box"], 100, 2, share=0.01)
    rng = np.random.default_rng(0)
    once.allocate()
    monkeypatch.setattr(devices, "available_bytes", lambda device: 10)
    with pytest.raises(ValueError, match=r"final_share: .* of 200 transitions .* 10 B are avail"):
        add_steps((once,), 50, rng, ends=0.9)
    stored = once.num_transitions
    monkeypatch.setattr(devices, "available_bytes", lambda device: None)
    rng = np.random.default_rng(0)
    add_steps((both,), stored // 2, rng, ends=0.9)
    assert_all_same(both, once)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_the_same_on_cuda() -> None:
    both, once = pair(PAIR, 20, 4, n_steps=2, gamma=0.9)
    add_steps((both, once), 50, np.random.default_rng(0), ends=0.2)
    for buffer in (both, once):
        buffer.device = "cuda"
    index = torch.arange(both.num_transitions, device="cuda")
    left, right = both._get_samples(index), once._get_samples(index)
    for name in ("observations", "next_observations"):
        for key, value in getattr(left, name).items():
            assert bits(value.cpu()) == bits(getattr(right, name)[key].cpu())


def learner(once: bool, **arguments: Any) -> DDQN:
    return DDQN(
        "MultiInputPolicy",
        TensorVecEnv(ToyVectorEnv(4, horizon=5, dict_obs=True)),
        optimize_memory_usage=once,
        buffer_size=80,
        learning_starts=8,
        batch_size=16,
        n_steps=2,
        policy_kwargs={"net_arch": [16]},
        device="cpu",
        seed=0,
        **arguments,
    )


def assert_same_weights(left: DDQN, right: DDQN) -> None:
    for one, other in zip(left.policy.parameters(), right.policy.parameters(), strict=True):
        assert torch.equal(one, other)


def test_training_is_the_same_and_the_estimate_comes_first(capsys: Any) -> None:
    both, once = learner(False), learner(True, verbose=1)
    both.learn(160)
    printed = capsys.readouterr().out
    assert "Replay buffer" not in printed
    said = once.replay_buffer.memory_estimate()
    once.learn(160)
    printed = capsys.readouterr().out
    assert printed.count("Replay buffer: 80 transitions of") == 1
    assert said.partition(" on cpu")[0] in printed
    assert_same_weights(both, once)
    once.learn(4, reset_num_timesteps=False)
    assert "Replay buffer" not in capsys.readouterr().out
