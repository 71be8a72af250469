"""Observations stored once: every sample equal, bit for bit, to one of a buffer that keeps both."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from sb3_ext.adapter import TensorVecEnv, reached_observation
from sb3_ext.ddqn import DDQN
from sb3_ext.replay import shared_observations
from sb3_ext.replay.buffers import TensorReplayBuffer
from tests.fakes import ToyVectorEnv

PAIR = spaces.Dict(points=spaces.Box(-1, 1, (3, 2), np.float32), coords=spaces.MultiBinary(4))
SPACES = {
    "box": spaces.Box(-np.inf, np.inf, (2,), np.float32),
    "double": spaces.Box(-np.inf, np.inf, (2, 2), np.float64),
    "half": spaces.Box(-np.inf, np.inf, (3,), np.float16),
    "discrete": spaces.Discrete(4),
    "dict": PAIR,
}


def pair(space: spaces.Space, slots: int, rows: int, share: float = 0.25, **kwargs: Any) -> Any:
    """A buffer that stores both observations, and one that stores them once."""
    arguments = (slots * rows, space, spaces.Discrete(5))
    kwargs = {"device": "cpu", "n_envs": rows, "store_next_legal": True, **kwargs}
    once = TensorReplayBuffer(*arguments, optimize_memory_usage=True, final_share=share, **kwargs)
    return TensorReplayBuffer(*arguments, **kwargs), once


def drawn(space: spaces.Space, rows: int, rng: np.random.Generator) -> dict[str, torch.Tensor]:
    """Observations of all rows by entry, of few values, so that equal ones are common."""
    entries = space.items() if isinstance(space, spaces.Dict) else [("", space)]
    found = {}
    for key, each in entries:
        shape = (rows, *(each.shape or (1,)))
        values = rng.choice([-0.0, 0.0, 1.0, 2.0, np.nan], size=shape)
        if not np.issubdtype(each.dtype, np.floating):
            values = rng.integers(2, size=shape)
        found[key] = torch.from_numpy(values.astype(each.dtype))
    return found


def whole(entries: dict[str, torch.Tensor]) -> Any:
    return entries.get("", entries)


def add_steps(
    buffers: tuple[TensorReplayBuffer, ...],
    steps: int,
    rng: np.random.Generator,
    ends: float,
    outside: float = 0.1,
    start: dict[str, torch.Tensor] | None = None,
) -> dict[str, torch.Tensor]:
    """Random play into all buffers alike: ends, truncations and resets from outside."""
    space, rows = buffers[0].observation_space, buffers[0].n_envs
    seen = drawn(space, rows, rng) if start is None else start
    for _ in range(steps):
        reached = drawn(space, rows, rng)
        terminated, truncated = (torch.from_numpy(coin) for coin in rng.random((2, rows)) < ends)
        actions = torch.from_numpy(rng.integers(5, size=rows))
        rewards = torch.from_numpy(rng.normal(size=rows).astype(np.float32))
        legal = torch.from_numpy(rng.random((rows, 5)) < 0.5)
        for buffer in buffers:
            buffer.add_batch(
                whole(seen), whole(reached), actions, rewards, terminated, truncated, legal
            )
        fresh = drawn(space, rows, rng)
        away = terminated | truncated | torch.from_numpy(rng.random(rows) < outside)
        seen = {
            key: torch.where(away.view(-1, *[1] * (value.dim() - 1)), fresh[key], value)
            for key, value in reached.items()
        }
    return seen


def bits(value: torch.Tensor) -> bytes:
    return value.contiguous().numpy().tobytes()


def assert_same(left: Any, right: Any) -> None:
    """Bit for bit: -0.0 is not 0.0, and a NaN equals itself."""
    for one, other in zip(left, right, strict=True):
        entries = (one, other) if isinstance(one, dict) else ({"": one}, {"": other})
        for key, value in entries[0].items():
            if value is None:
                assert entries[1][key] is None
                continue
            assert value.dtype == entries[1][key].dtype
            assert value.shape == entries[1][key].shape
            assert bits(value) == bits(entries[1][key])


def assert_all_same(both: TensorReplayBuffer, once: TensorReplayBuffer) -> None:
    assert both.num_transitions == once.num_transitions
    index = torch.arange(both.num_transitions)
    assert_same(both._get_samples(index), once._get_samples(index))


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


def test_adding_and_sampling_never_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    _, once = pair(SPACES["box"], 40, 3, n_steps=3, gamma=0.9)
    reached = drawn(SPACES["box"], 3, rng)[""]
    actions, flags = torch.zeros(3, dtype=torch.int64), torch.zeros(3, dtype=torch.bool)
    legal = torch.ones(3, 5, dtype=torch.bool)
    once.allocate()

    def waits(*_: Any, **__: Any) -> None:
        raise AssertionError("the buffer waited for the device")

    for name in ("cpu", "numpy", "tolist", "item", "__bool__", "__int__", "__float__", "nonzero"):
        monkeypatch.setattr(torch.Tensor, name, waits)
    for _ in range(10):
        once.add_batch(reached, reached, actions, flags.float(), flags, flags, legal)
        once.sample(16)


@pytest.mark.parametrize("way", ["state_dict", "pickle", "deepcopy"])
@pytest.mark.parametrize("steps", [1, 4, 5, 13])
def test_a_restored_buffer_goes_on_the_same(way: str, steps: int) -> None:
    kwargs: Any = {"n_steps": 2, "gamma": 0.9, "seed": 11}
    both, once = pair(PAIR, 5, 3, **kwargs)
    rng = np.random.default_rng(steps)
    seen = add_steps((both, once), steps, rng, ends=0.3)
    for buffer in (both, once):
        buffer.sample(4)
    if way == "state_dict":
        tensors, counters = once.state_dict()
        assert all(tensor.is_contiguous() for tensor in tensors.values())
        _, restored = pair(PAIR, 5, 3, share=0.01, **kwargs)
        tensors = {name: tensor.clone() for name, tensor in tensors.items()}
        restored.load_state_dict(tensors, json.loads(json.dumps(counters)))
    elif way == "pickle":
        restored = pickle.loads(pickle.dumps(once))
    else:
        restored = copy.deepcopy(once)
    for _ in range(4):
        assert_all_same(both, restored)
        assert_same(both.sample(6), restored.sample(6))
        seen = add_steps((both, restored), 3, rng, ends=0.3, start=seen)
    # Loaded into a buffer that held something else.
    tensors, counters = restored.state_dict()
    tensors = {name: tensor.clone() for name, tensor in tensors.items()}
    _, other = pair(PAIR, 5, 3, **kwargs)
    add_steps((other,), 8, rng, ends=0.9)
    other.load_state_dict(tensors, counters)
    assert_all_same(both, other)


def test_what_does_not_fit_is_refused_and_changes_nothing() -> None:
    both, once = pair(PAIR, 5, 3)
    rng = np.random.default_rng(0)
    add_steps((both, once), 4, rng, ends=0.5)
    tensors, counters = once.state_dict()
    before = pickle.dumps(once)
    with pytest.raises(ValueError, match="optimize_memory_usage: got False, need True"):
        once.load_state_dict(*both.state_dict())
    with pytest.raises(ValueError, match="optimize_memory_usage: got True, need False"):
        both.load_state_dict(tensors, counters)
    without = {name: value for name, value in tensors.items() if not name.startswith("final")}
    with pytest.raises(ValueError, match=r"replay buffer: got .* need .*final_observations\.coord"):
        once.load_state_dict(without, counters)
    short = tensors | {"final_observations.points": tensors["final_observations.points"][1:]}
    with pytest.raises(ValueError, match=r"field final_observations.points: got shape"):
        once.load_state_dict(short, counters)
    beyond = tensors["reached_at"].clone()
    beyond[beyond == 0] = 1_000
    with pytest.raises(ValueError, match="field reached_at: got other places than 0 to"):
        once.load_state_dict(tensors | {"reached_at": beyond}, counters)
    assert pickle.dumps(once) == before


def test_an_old_checkpoint_is_of_a_buffer_that_keeps_both() -> None:
    both, once = pair(PAIR, 5, 3)
    add_steps((both,), 4, np.random.default_rng(0), ends=0.5)
    tensors, counters = both.state_dict()
    del counters["optimize_memory_usage"]
    fresh, _ = pair(PAIR, 5, 3)
    fresh.load_state_dict(tensors, counters)
    assert_all_same(both, fresh)
    with pytest.raises(ValueError, match="optimize_memory_usage"):
        once.load_state_dict(tensors, counters)


def test_reset_forgets_and_goes_on() -> None:
    both, once = pair(SPACES["box"], 5, 3)
    rng = np.random.default_rng(0)
    add_steps((both, once), 8, rng, ends=0.5)
    for buffer in (both, once):
        buffer.reset()
        assert buffer.num_transitions == 0
    add_steps((both, once), 3, rng, ends=0.5)
    assert_all_same(both, once)


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
    monkeypatch.setattr(shared_observations, "available_bytes", lambda device: 10)
    with pytest.raises(ValueError, match=r"final_share: .* of 200 transitions .* 10 B are avail"):
        add_steps((once,), 50, rng, ends=0.9)
    stored = once.num_transitions
    monkeypatch.setattr(shared_observations, "available_bytes", lambda device: None)
    rng = np.random.default_rng(0)
    add_steps((both,), stored // 2, rng, ends=0.9)
    assert_all_same(both, once)


@pytest.mark.parametrize("share", [0.0, -0.5, 1.5, float("nan")])
def test_a_share_is_above_0_and_at_most_1(share: float) -> None:
    with pytest.raises(ValueError, match="final_share must lie in"):
        pair(PAIR, 5, 3, share=share)


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
