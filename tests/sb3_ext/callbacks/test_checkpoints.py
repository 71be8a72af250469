"""When checkpoints are written, and what happens if they cannot be."""

import itertools
import time

import pytest
import torch
from stable_baselines3.common.callbacks import BaseCallback, CallbackList

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.adapter.seam import walk_callbacks
from sb3_ext.callbacks import Checkpoints
from sb3_ext.callbacks.base import Every
from sb3_ext.checkpoints.resume import callback_states, load_callback_states, resume
from sb3_ext.runs.checkpoint import CheckpointError, list_checkpoints, load_checkpoint
from sb3_ext.runs.files import CheckpointWarning, FolderInUseError
from tests.fakes import ToyVectorEnv
from tests.sb3_ext.helpers import StepHook, keep_logs, make_model
from tests.sb3_ext.runs.killed import full, held_by_another


def numbers(run):
    return sorted(int(path.name.removeprefix("checkpoint-")) for path in list_checkpoints(run))


def test_rhythm_and_number_kept(tmp_path):
    model = make_model(learning_starts=80)
    every = Every(transitions=100)
    both = [Checkpoints(tmp_path / name, every, keep_last=3) for name in "ac"]
    model.learn(400, [*both, Checkpoints(tmp_path / "b", {"updates": 15}, keep_last=9)])
    for name in "ac":
        assert numbers(tmp_path / name) == [200, 304, 400]  # the first step past 300, and the end
    saved = [load_checkpoint(p)["training"] for p in list_checkpoints(tmp_path / "b")]
    assert [counters["_n_updates"] for counters in saved] == [40, 30, 15]


def test_a_checkpoint_has_the_same_bytes_however_long_the_run_took(tmp_path, monkeypatch):
    """Although what is logged by the clock is logged elsewhere."""
    found = []
    logged = []
    for seconds in (0.0, 0.1):
        clock = itertools.count()
        monkeypatch.setattr(time, "perf_counter", lambda s=seconds, c=clock: s * next(c))
        model = make_model(log_interval_seconds=10.0)
        logs = keep_logs(model)
        run = tmp_path / str(seconds)
        model.learn(800, Checkpoints(run, Every(updates=7), keep_last=20))
        found.append([(path / "manifest.json").read_text() for path in list_checkpoints(run)])
        logged.append(logs.values("rollout/episodes"))
    assert len(logged[0]) == 1 < len(logged[1])
    assert logged[0][-1] == logged[1][-1] > 0
    assert len(found[0]) > 10
    assert found[0] == found[1]


def test_the_folder_belongs_to_one_process_until_training_ends(tmp_path):
    checkpoints = Checkpoints(tmp_path, Every(transitions=100))
    with held_by_another(tmp_path), pytest.raises(FolderInUseError, match=r"^run_dir: "):
        make_model().learn(200, checkpoints)
    make_model().learn(200, checkpoints)
    with held_by_another(tmp_path):  # free again
        pass


def test_full_disk_warns_and_training_goes_on(tmp_path, monkeypatch):
    model = make_model()
    checkpoints = Checkpoints(tmp_path, Every(transitions=100))
    model.learn(200, checkpoints)
    before = numbers(tmp_path)
    monkeypatch.setattr("sb3_ext.runs.files.os.fsync", full)
    with (
        pytest.warns(CheckpointWarning, match="no checkpoint was written: .*No space left"),
        pytest.raises(OSError, match="No space left"),  # the one at the end must not be lost
    ):
        model.learn(200, checkpoints, reset_num_timesteps=False)
    assert model.num_timesteps == 400
    assert numbers(tmp_path) == before


@pytest.mark.parametrize("field", ["loss", "rewards", "observations"])
def test_what_is_spoiled_is_named_and_never_kept(tmp_path, field):
    """Not every NaN is learned from at once, so a finite loss says nothing about a checkpoint."""

    class Broken(ToyVectorEnv):
        def step(self, actions):
            observation, rewards, *rest = super().step(actions)
            spoiled = observation.clone(), rewards.clone()
            spoiled[field == "rewards"][3] = torch.inf if field == "observations" else torch.nan
            return *spoiled, *rest

    def spoil(callback):
        if field == "loss" and callback.num_timesteps == 240:
            with torch.no_grad():
                next(iter(callback.model.q_net.parameters())).fill_(torch.nan)

    callbacks = [StepHook(spoil), Checkpoints(tmp_path, Every(transitions=100))]
    make_model().learn(200, callbacks)
    kept = numbers(tmp_path)
    without = {} if field == "loss" else {"learning_starts": 10**6}  # without any update
    model = make_model(TensorVecEnv((ToyVectorEnv if field == "loss" else Broken)(8)), **without)
    resume(model, tmp_path)
    named = (
        "train/loss" if field == "loss" else f"^{field}.*: the environment returned NaN or an inf"
    )
    with pytest.raises(FloatingPointError, match=named):
        model.learn(400, callbacks, reset_num_timesteps=False)
    assert numbers(tmp_path) == kept
    other = make_model()
    resume(other, tmp_path)
    other.learn(200, reset_num_timesteps=False)


class Counting(BaseCallback):
    def __init__(self, calls=0):
        super().__init__()
        self.calls = calls

    def _on_step(self):
        self.calls += 1
        return True

    def state_dict(self):
        return {"calls": self.calls}

    def load_state_dict(self, state):
        self.calls = state["calls"]


def test_callbacks_are_found_in_lists_and_inside_others(tmp_path):
    outer = StepHook(bool)
    outer.callback = Counting(1)
    nested = CallbackList([Counting(2), CallbackList([outer, Counting(3)])])
    found = walk_callbacks([nested, None, Counting(4)])
    assert [each.calls for each in found if isinstance(each, Counting)] == [2, 1, 3, 4]
    states = {"Counting": {"calls": 2}, "Counting#2": {"calls": 1}, "Counting#3": {"calls": 3}}
    assert callback_states(nested) == states
    saved = Checkpoints(tmp_path, Every(transitions=64))
    make_model().learn(160, [Counting(), saved, Counting(100)])
    first = Counting()
    second = Counting()
    resume(make_model(), tmp_path, [first, Checkpoints(tmp_path, Every(transitions=64)), second])
    assert (first.calls, second.calls) == (20, 120)


def test_other_callbacks_than_before_are_named():
    states = callback_states([Counting(3), Counting(4)])
    only = Counting()
    with pytest.warns(CheckpointWarning, match="Counting#2"):
        load_callback_states([only], states)
    assert only.calls == 3
    with pytest.warns(CheckpointWarning, match="Counting: the checkpoint has no state"):
        load_callback_states([only], {})
    with pytest.raises(CheckpointError, match="callbacks/Counting: 'calls'"):
        load_callback_states([only], {"Counting": {}})
