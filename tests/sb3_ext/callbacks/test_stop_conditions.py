"""Budgets and goals that end training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.callbacks import Bound, Checkpoints, RhoEvaluation, StopConditions
from sb3_ext.checkpoints.model_state import model_state
from sb3_ext.checkpoints.resume import resume
from sb3_ext.runs import stopping as module
from sb3_ext.schedules.frequency import Every
from tests.fakes import ToyVectorEnv
from tests.sb3_ext.callbacks.helpers import StepHook, game_model, keep_logs
from tests.sb3_ext.checkpoints.helpers import equal
from tests.sb3_ext.ddqn.helpers import make_model


def test_updates_exactly() -> None:
    model, stop = make_model(), StopConditions(max_updates=21)
    model.learn(10_000, stop)
    assert model._n_updates == 21
    assert stop.reason == "max_updates 21 reached"


def test_timesteps_with_their_updates() -> None:
    model, other = make_model(), make_model()
    model.learn(10_000, StopConditions(max_timesteps=300))
    other.learn(304)
    assert (model.num_timesteps, model._n_updates) == (304, other._n_updates)


def test_episodes_of_all_rows() -> None:
    ended = [0]

    def count(callback: BaseCallback) -> None:
        ended[0] += int(callback.locals["dones"].sum())

    model, stop = make_model(), StopConditions(max_episodes=30)
    model.learn(10_000, [StepHook(count), stop])
    assert 30 <= ended[0] < 38
    assert stop.reason == "max_episodes 30 reached"


def test_first_budget_counts_and_remaining_is_logged() -> None:
    model = make_model(log_interval_updates=1, learning_starts=0)
    logs = keep_logs(model)
    stop = StopConditions(max_updates=10, max_timesteps=800)
    model.learn(10_000, stop)
    assert stop.reason == "max_updates 10 reached"
    left = logs.values("time/remaining")
    assert left == sorted(left, reverse=True)
    assert left[0] == pytest.approx(0.9)
    assert left[-1] == 0.0


def test_b22_goal_of_an_evaluation_is_noticed_at_once() -> None:
    model = game_model()
    evaluation = RhoEvaluation(["random"], Every(updates=5), games=20, max_value=6)
    goal = Bound("rho/random", lower=0.0, times=2)
    stop = StopConditions(until=goal, max_updates=1000)
    model.learn(10_000, [evaluation, stop])
    assert stop.reason == "goal reached: rho/random"
    assert [entry["updates"] for entry in evaluation.history[:2]] == [5, 10]
    assert model._n_updates <= 11


def test_all_conditions_must_hold() -> None:
    model = make_model()
    until = [Bound("updates", lower=5), Bound("transitions", lower=200)]
    model.learn(10_000, StopConditions(until=until))
    assert 200 <= model.num_timesteps <= 216


def test_logged_metrics_can_be_goals() -> None:
    model = make_model(log_interval_updates=4)
    stop = StopConditions(until=Bound("train/n_updates", lower=12), max_updates=500)
    model.learn(10_000, stop)
    assert stop.reason == "goal reached: train/n_updates"
    assert 12 <= model._n_updates <= 14


def test_used_up_before_it_begins() -> None:
    model = make_model()
    model.learn(10_000, StopConditions(max_updates=10))
    stop = StopConditions(max_updates=10)
    model.learn(10_000, stop, reset_num_timesteps=False)
    assert model._n_updates == 10
    assert stop.reason is not None


def test_stock_algorithms_stop() -> None:
    model = DQN("MlpPolicy", TensorVecEnv(ToyVectorEnv(8)), buffer_size=400, device="cpu")
    stop = StopConditions(max_timesteps=200)
    model.learn(10_000, stop)
    assert model.num_timesteps == 200


def test_budgets_go_on_after_a_resume_and_so_does_the_run(tmp_path: Path) -> None:
    def callbacks(run_dir: Path) -> list[Any]:
        return [
            StopConditions(max_episodes=60, max_seconds=1e9),
            Checkpoints(run_dir, Every(transitions=10**9)),
        ]

    whole = make_model(exploration_rate=0.3)
    whole.learn(10_000, callbacks(tmp_path / "whole"))
    model = make_model(exploration_rate=0.3)
    first = callbacks(tmp_path / "run")
    model.learn(104, first)
    other, second = make_model(exploration_rate=0.3), callbacks(tmp_path / "run")
    resume(other, tmp_path / "run", second)
    assert second[0].state_dict()["episodes"] == first[0].state_dict()["episodes"] > 0
    other.learn(10_000, second, reset_num_timesteps=False)
    assert second[0].used()["max_episodes"] >= 60
    ours, theirs = model_state(other), model_state(whole)
    for state in (ours, theirs):  # what depends on how much learn() was asked for
        state["training"]["counters"].pop("_current_progress_remaining")
    assert equal(ours, theirs)


def test_seconds_and_those_before_a_resume_count(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])

    def pass_time(callback: BaseCallback) -> None:
        now[0] += 1.0

    first = StopConditions(max_seconds=12)
    make_model().learn(5 * 8, [StepHook(pass_time), first])
    now[0] += 500.0  # the program was not running
    state = first.state_dict()
    assert state["seconds"] == 5.0
    second, model = StopConditions(max_seconds=12), make_model()
    second.load_state_dict(state)
    model.learn(10_000, [StepHook(pass_time), second])
    assert model.num_timesteps == 7 * 8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "give at least one of max_updates, max_timesteps"),
        ({"max_updates": 0}, "max_updates must be a whole number of at least 1, got 0"),
        ({"max_seconds": 0}, r"max_seconds must lie in \(0, inf\), got 0"),
        ({"max_episodes": "1e3"}, "max_episodes must be a number, got the string '1e3'"),
        ({"until": {"field": "x"}}, "until: must be a mapping with the key condition"),
    ],
)
def test_bad_arguments(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        StopConditions(**arguments)


def test_other_conditions_are_refused_on_resume() -> None:
    state = StopConditions(until=Bound("x", lower=1)).state_dict()
    with pytest.raises(ValueError, match="until: 1 conditions were saved, 0 are here"):
        StopConditions(max_updates=1).load_state_dict(state)
    assert equal(state["conditions"], [{"in_a_row": 0}])
