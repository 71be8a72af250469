"""Replay buffers that are saved, loaded and go on the same."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3 import DQN

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.replay.buffers import TensorReplayBuffer
from tests.fakes import ToyVectorEnv
from tests.sb3_ext.replay.helpers import (
    PAIR,
    add_steps,
    assert_all_same,
    assert_same,
    filled,
    pair,
    restored,
)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("steps", [1, 4, 5, 13])
@pytest.mark.parametrize("way", ["state_dict", "pickle", "deepcopy"])
def test_a_restored_buffer_goes_on_the_same(way: str, steps: int, shared: bool) -> None:
    kwargs: Any = {"n_steps": 2, "gamma": 0.9, "seed": 11}
    buffers = pair(PAIR, 5, 3, **kwargs)
    rng = np.random.default_rng(steps)
    seen = add_steps(buffers, steps, rng, ends=0.3)
    for buffer in buffers:
        buffer.sample(4)
    again = restored(buffers[shared], way, pair(PAIR, 5, 3, share=0.01, **kwargs)[shared])
    both = buffers[0]
    for _ in range(4):
        assert_all_same(both, again)
        assert_same(both.sample(6), again.sample(6))
        seen = add_steps((both, again), 3, rng, ends=0.3, start=seen)
    other = pair(PAIR, 5, 3, **kwargs)[shared]
    add_steps((other,), 8, rng, ends=0.9)  # what it held is gone
    assert_all_same(both, restored(again, "state_dict", other))


def test_pickle_holds_numpy_and_only_what_is_in_use() -> None:
    data = pickle.dumps(filled(slots=10_000, steps=3))
    assert len(data) < 10_000
    assert b"torch._utils" not in data
    assert b"UntypedStorage" not in data


@pytest.mark.parametrize("way", ["state_dict", "pickle"])
def test_an_empty_buffer_can_be_saved(way: str) -> None:
    assert restored(filled(steps=0), way, filled(steps=4)).num_transitions == 0


def changed(**fields: Any) -> Callable[..., Any]:
    """A state with other tensors, made of the ones there are, or with other counters."""

    def change(tensors: Any, counters: Any) -> Any:
        for name, value in fields.items():
            field = name.replace("__", ".")
            if callable(value):
                tensors = tensors | {field: value(tensors[field].clone())}
            else:
                counters = counters | {field: value}
        return tensors, counters

    return change


def without(name: str) -> Callable[..., Any]:
    """A state that lacks tensors or a counter whose names begin so."""

    def change(*halves: Any) -> Any:
        return [{k: v for k, v in half.items() if not k.startswith(name)} for half in halves]

    return change


@pytest.mark.parametrize(
    ("shared", "change", "message"),
    [
        (False, lambda *_: filled(rows=2).state_dict(), "replay buffer n_envs: got 2, need 3"),
        (False, lambda *_: filled(slots=9).state_dict(), "replay buffer num_slots: got 9, need 5"),
        (
            False,
            changed(observations__points=lambda value: value[:, :, :2]),
            r"field observations.points: got shape \(4, 3, 2, 2\) .* need \(4, 3, 3, 2\)",
        ),
        (False, changed(rewards=torch.Tensor.double), r"field rewards: .*float64, need .*float32"),
        (False, without("rewards"), "replay buffer: got"),
        (False, changed(pos=5), "replay buffer pos: got 5, allowed are 0 to 4"),
        (False, without("seed"), r"counters: \['seed'\] missing"),
        (False, changed(seed=-1), "seed: got -1"),
        (False, changed(optimize_memory_usage=True), "usage: got True, need False"),
        (True, changed(optimize_memory_usage=False), "usage: got False, need True"),
        (True, without("optimize"), "optimize_memory_usage: got False, need True"),  # an old one
        (True, without("final"), r"replay buffer: got .* need .*final_observations\.coord"),
        (
            True,
            changed(final_observations__points=lambda value: value[1:]),
            "field final_observations.points: got shape",
        ),
        (
            True,
            changed(reached_at=lambda value: torch.where(value == 0, 1_000, value)),
            "field reached_at: got other places than 0 to",
        ),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(
    shared: bool, change: Any, message: str
) -> None:
    buffer = filled(steps=4, optimize_memory_usage=shared)
    before = pickle.dumps(buffer)
    state = change(*filled(steps=4, optimize_memory_usage=shared).state_dict())
    with pytest.raises(ValueError, match=message):
        buffer.load_state_dict(*state)
    assert pickle.dumps(buffer) == before


def test_an_old_checkpoint_is_of_a_buffer_that_keeps_both() -> None:
    tensors, counters = filled(steps=4).state_dict()
    del counters["optimize_memory_usage"]
    fresh = filled(steps=0)
    fresh.load_state_dict(tensors, counters)
    assert_all_same(filled(steps=4), fresh)


@pytest.mark.parametrize("shared", [False, True])
def test_masks_that_forbid_nothing_are_loaded_without(shared: bool) -> None:
    """As were stored for environments that now say that all their actions are legal."""
    tensors, counters = filled(steps=4, optimize_memory_usage=shared).state_dict()
    masks = torch.ones((4, 3, 300), dtype=torch.bool)
    buffer = filled(steps=1, optimize_memory_usage=shared)
    buffer.load_state_dict(tensors | {"next_legal": masks}, counters)
    assert_all_same(filled(steps=4), buffer)
    masks[2, 1, 7] = False
    with pytest.raises(ValueError, match="next_legal"):
        buffer.load_state_dict(tensors | {"next_legal": masks}, counters)


@pytest.mark.parametrize("shared", [False, True])
def test_reset_forgets_and_goes_on(shared: bool) -> None:
    fresh, buffer = filled(steps=0), filled(steps=8, optimize_memory_usage=shared)
    buffer.reset()
    assert buffer.num_transitions == 0
    with pytest.raises(ValueError, match="sample: the buffer is empty"):
        buffer.sample(1)
    add_steps((fresh, buffer), 3, np.random.default_rng(0), ends=0.5)
    assert_all_same(fresh, buffer)


def test_sb3_saves_and_loads_it(tmp_path: Path) -> None:
    def model() -> DQN:
        return DQN(
            "MultiInputPolicy",
            TensorVecEnv(ToyVectorEnv(4, dict_obs=True)),
            replay_buffer_class=TensorReplayBuffer,
            buffer_size=400,
            learning_starts=8,
            device="cpu",
            seed=0,
        )

    trained = model()
    trained.learn(40)
    trained.save_replay_buffer(tmp_path / "buffer.pkl")
    trained.save(tmp_path / "model.zip")
    fresh = model()
    assert fresh.replay_buffer.state_dict()[0] == {}  # nothing allocated by making a model
    fresh.load_replay_buffer(tmp_path / "buffer.pkl")
    stored = trained.replay_buffer.num_transitions
    assert fresh.replay_buffer.num_transitions == stored >= 40
    assert_same(fresh.replay_buffer.sample(9), trained.replay_buffer.sample(9))
    fresh.learn(40, reset_num_timesteps=False)
    assert fresh.replay_buffer.num_transitions == 2 * stored
    played = DQN.load(tmp_path / "model.zip")
    assert played.replay_buffer.state_dict()[0] == {}


def test_training_again_from_the_same_seed_is_the_same() -> None:
    def weights() -> list[torch.Tensor]:
        model = DQN(
            "MlpPolicy",
            TensorVecEnv(ToyVectorEnv(4)),
            replay_buffer_class=TensorReplayBuffer,
            replay_buffer_kwargs={"seed": 3, "n_steps": 2, "gamma": 0.9},
            learning_starts=8,
            device="cpu",
            seed=0,
        )
        model.learn(80)
        return [value.clone() for value in model.policy.parameters()]

    for left, right in zip(weights(), weights(), strict=True):
        assert torch.equal(left, right)
