"""What is logged of a run: actions, layers, times, and what it costs the machine."""

import sys
import time
from types import SimpleNamespace

import pytest
import torch
from stable_baselines3 import PPO

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.callbacks import ActionCounts, LayerStatistics, SystemStatistics, Timers
from sb3_ext.callbacks.base import Every
from sb3_ext.callbacks.watching import entropy_of_counts
from tests.fakes import ToyVectorEnv
from tests.sb3_ext.helpers import StepHook, keep_logs, make_model


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([9, 0, 0, 0], 0.0),
        ([1, 1, 0, 0], 0.5),
        ([1, 3], 0.8112781244591328),
        ([0, 0, 0], 0.0),
        ([7], 0.0),
    ],
)
def test_b25_entropy(counts, expected):
    assert entropy_of_counts(torch.tensor(counts)) == pytest.approx(expected, abs=1e-12)


def test_counts_are_those_of_the_rollouts_since_the_last_log():
    expected = torch.zeros(4, dtype=torch.int64)

    def count(callback):
        if callback.num_timesteps == 8 * 21:
            expected.zero_()
        for action in callback.locals["actions"].tolist():
            expected[action] += 1

    model = make_model(log_interval_updates=1)
    logs = keep_logs(model)
    counts = ActionCounts(Every(transitions=160))
    model.learn(328, [StepHook(count), counts])
    shares = [logs.values(f"actions/{action}")[-1] for action in range(4)]
    open_ = counts.state_dict()["counts"]
    assert open_.sum() == 8
    assert shares == pytest.approx([each / 160 for each in (expected - open_).tolist()])
    assert logs.values("actions/entropy")[-1] == pytest.approx(entropy_of_counts(expected - open_))
    assert logs.values("actions/most_common_share")[-1] == pytest.approx(max(shares))


def test_stock_algorithms():
    env = TensorVecEnv(ToyVectorEnv(8))
    model = PPO("MlpPolicy", env, device="cpu", seed=0, n_steps=10, batch_size=40)
    logs = keep_logs(model)
    counts = ActionCounts(Every(transitions=80))
    watching = [counts, Timers(Every(transitions=40)), LayerStatistics(Every(transitions=32))]
    model.learn(160, watching, log_interval=1)
    assert len(logs.values("actions/0")) == 2
    assert all(each > 0 for each in logs.values("time/rollout_ms"))
    keys = {key for dump in logs.dumps for key in dump if key.startswith("layers/")}
    assert len(keys) == 4 * len(list(model.policy.parameters()))


def test_layers_of_every_trained_parameter_in_their_rhythm():
    expected = {}

    def look(callback):
        for name, parameter in callback.model.policy.named_parameters():
            if parameter.grad is not None:
                for kind, tensor in (("weight", parameter), ("gradient", parameter.grad)):
                    expected[f"layers/{name}/{kind}_mean"] = tensor.mean().item()
                    expected[f"layers/{name}/{kind}_std"] = tensor.std(correction=0).item()

    for every in (10, 1):
        model = make_model(log_interval_updates=1)
        logs = keep_logs(model)
        model.learn(320, [StepHook(look), LayerStatistics({"updates": every})])
        found = [dump for dump in logs.dumps if any(key.startswith("layers/") for key in dump)]
        # Recorded when the next rollout begins, written with that rollout's updates.
        assert [dump["train/n_updates"] for dump in found][:3] == [1 + every * n for n in (1, 2, 3)]
    last = {key: value for key, value in found[-1].items() if key.startswith("layers/")}
    assert last == pytest.approx(expected)


def test_rollouts_and_what_lies_between_and_what_is_slow(monkeypatch):
    passed = [0.0]  # the clock stands still unless it is moved
    monkeypatch.setattr(time, "perf_counter", lambda: sum(passed))
    model = make_model(train_freq=2, learning_starts=0, log_interval_updates=1)
    logs = keep_logs(model)
    timers = Timers(Every(transitions=64), slow_seconds=1.5)
    hook = StepHook(lambda _: passed.append(1.0))
    hook.after_train = lambda: passed.append(0.25)
    with pytest.warns(UserWarning, match="timers: rollout took 2 s") as told:
        model.learn(144, [timers, hook])
    assert logs.values("time/rollout_ms") == [2000.0] * 2
    assert logs.values("time/update_ms") == [250.0] * 2
    assert logs.values("time/rollout_slow") == [4, 8]
    assert not logs.values("time/update_slow")
    assert len(told) == 1


@pytest.mark.parametrize(("system", "peak"), [("darwin", [300]), ("linux", [300 * 1024]), ("", [])])
def test_every_system_counts_memory_in_its_own_unit(monkeypatch, system, peak):
    """macOS in bytes, Linux in KiB, Windows not at all."""
    used = SimpleNamespace(ru_maxrss=300 * 2**20)
    known = SimpleNamespace(RUSAGE_SELF=0, getrusage=lambda who: used) if system else None
    monkeypatch.setitem(sys.modules, "resource", known)
    monkeypatch.setattr(sys, "platform", system)
    model = make_model(log_interval_updates=1)
    logs = keep_logs(model)
    callback = SystemStatistics(Every(transitions=1))
    callback.init_callback(model)
    callback.on_training_start({}, {})
    callback.act()
    model.logger.dump()
    assert logs.values("system/peak_memory_mb") == peak
    assert 0 <= logs.values("system/processors")[0] < 64
