"""What is decided by numbers: conditions, the end of training, the stages of a curriculum."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecMonitor

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.callbacks import (
    Bound,
    Checkpoints,
    Converged,
    Curriculum,
    RhoEvaluation,
    StopConditions,
)
from sb3_ext.checkpoints.model_state import model_state
from sb3_ext.checkpoints.resume import resume
from sb3_ext.runs import stopping as module
from sb3_ext.runs.stopping import Condition, parse_conditions
from sb3_ext.schedules.frequency import Every
from tests.fakes import ToyVectorEnv
from tests.sb3_ext.callbacks.helpers import StepHook, game_model, keep_logs
from tests.sb3_ext.checkpoints.helpers import equal
from tests.sb3_ext.ddqn.helpers import make_model


def feed(condition: Condition, values: list[float], field: str = "x") -> list[bool]:
    met = []
    for value in values:
        condition.observe({field: value, "other": 1e9})
        met.append(condition.met)
    return met


@pytest.mark.parametrize(
    ("bound", "values", "expected"),
    [
        (Bound("x", lower=1, upper=2), [0.9, 1, 2, 2.1], [0, 1, 1, 0]),
        (Bound("x", upper=2), [-1e9, 3], [1, 0]),
        (Bound("x", lower=0), [-1, 0], [0, 1]),  # `lower or -inf` would drop it
        (Bound("x", upper=0), [1, 0], [0, 1]),
        (Bound("x", lower=1, times=3), [1, 1, 0, 1, 1, 1, 0], [0, 0, 0, 0, 0, 1, 0]),
    ],
)
def test_bounds_include_their_ends_and_follow_the_newest_values(
    bound: Bound, values: list[float], expected: list[bool]
) -> None:
    assert not any(feed(bound, [1.5, 0], field="y"))  # without a value of its own
    assert feed(bound, values) == expected
    bound.observe({})
    assert bound.met == expected[-1]


@pytest.mark.parametrize(
    ("arguments", "values", "expected"),
    [
        ({"window": 3, "tolerance": 0.5, "confidence": 1.0}, [0, 10, 10.2, 9.9, 20], [3]),
        ({"window": 4, "tolerance": 0.9, "confidence": 0.75}, [10.0, 10.1, 10.0, 13.0], [3]),
        ({"window": 4, "tolerance": 0.9, "confidence": 0.76}, [10.0, 10.1, 10.0, 13.0], []),
        ({"window": 2, "tolerance": 0.1, "warmup": 3}, [1, 1, 1, 1, 1], [4]),
    ],
)
def test_converged_needs_a_full_window_of_near_values(
    arguments: Any, values: list[float], expected: list[int]
) -> None:
    found = feed(Converged("x", **arguments), values)
    assert [number for number, met in enumerate(found) if met] == expected


@pytest.mark.parametrize(
    "make",
    [
        lambda: Bound("x", lower=1, times=4),
        lambda: Converged("x", window=4, tolerance=0.3, warmup=2),
    ],
)
def test_state_goes_through_json(make: Any) -> None:
    values = [1.0, 1.1, 0.9, 1.0, 1.2, 1.1, 1.0, 1.1]
    expected = feed(make(), values)
    for split in range(len(values)):
        first, second = make(), make()
        begin = feed(first, values[:split])
        second.load_state_dict(json.loads(json.dumps(first.state_dict())))
        assert begin + feed(second, values[split:]) == expected
    assert True in expected


def test_from_configuration_files() -> None:
    first, second = parse_conditions(
        [
            {"condition": "bound", "field": "rho/score", "lower": 0.1},
            {"condition": "converged", "field": "rho/score", "window": 4},
        ]
    )
    assert isinstance(first, Bound)
    assert isinstance(second, Converged)
    assert (first.field, first.lower, second.window) == ("rho/score", 0.1, 4)
    assert parse_conditions(first) == [first]


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("bound", "until: .* condition"),
        ({"field": "x"}, r"condition \(bound, converged\)"),
        ({"condition": "bounds", "field": "x"}, "'bounds'.*'bound'"),
        ({"condition": "bound", "field": "x", "low": 1}, "'lower'"),
        ({"condition": "bound", "lower": 1}, "'field'"),
        ({"condition": "bound", "field": "x"}, "lower, upper"),
        ({"condition": "bound", "field": "x", "lower": 2, "upper": 1}, "upper"),
        ({"condition": "bound", "field": "", "lower": 2}, "field"),
        ({"condition": "converged", "field": "x", "window": 1}, "window"),
        ({"condition": "converged", "field": "x", "confidence": 0}, "confidence"),
        ({"condition": "bound", "field": "x", "lower": True}, "lower"),
    ],
)
def test_mistakes_in_conditions_are_named(value: Any, named: str) -> None:
    with pytest.raises(ValueError, match=named) as caught:
        parse_conditions(value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("rules", "reason", "updates", "transitions"),
    [
        ({"max_updates": 21}, "max_updates 21 reached", (21, 21), (0, 10_000)),
        ({"max_timesteps": 300}, "max_timesteps 300 reached", (1, 500), (304, 304)),
        ({"max_updates": 10, "max_timesteps": 800}, "max_updates 10", (10, 10), (0, 400)),
        (
            {"until": [Bound("updates", lower=5), Bound("transitions", lower=200)]},
            "goal reached: updates, transitions",
            (5, 500),
            (200, 216),
        ),
        (
            {"until": Bound("train/n_updates", lower=12), "max_updates": 500},
            "goal reached: train/n_updates",
            (12, 14),
            (0, 1000),
        ),
    ],
)
def test_the_first_rule_ends_training(
    rules: Any, reason: str, updates: tuple[int, int], transitions: tuple[int, int]
) -> None:
    model, stop = make_model(log_interval_updates=4), StopConditions(**rules)
    model.learn(10_000, stop)
    assert reason in str(stop.reason)
    assert updates[0] <= model._n_updates <= updates[1]
    assert transitions[0] <= model.num_timesteps <= transitions[1]


def test_episodes_of_all_rows() -> None:
    ended = [0]

    def count(callback: BaseCallback) -> None:
        ended[0] += int(callback.locals["dones"].sum())

    model, stop = make_model(), StopConditions(max_episodes=30)
    model.learn(10_000, [StepHook(count), stop])
    assert 30 <= ended[0] < 38
    assert stop.reason == "max_episodes 30 reached"


def test_what_remains_is_logged() -> None:
    model = make_model(log_interval_updates=1, learning_starts=0)
    logs = keep_logs(model)
    model.learn(10_000, StopConditions(max_updates=10, max_timesteps=800))
    left = logs.values("time/remaining")
    assert left == sorted(left, reverse=True)
    assert (left[0], left[-1]) == (pytest.approx(0.9), 0.0)


def test_b22_goal_of_an_evaluation_is_noticed_at_once() -> None:
    model = game_model(log_interval_updates=1)  # what is logged besides counts no second time
    evaluation = RhoEvaluation(["random"], Every(updates=5), games=20, max_value=6)
    stop = StopConditions(until=Bound("rho/random", lower=0.0, times=3), max_updates=1000)
    model.learn(10_000, [evaluation, stop])
    assert stop.reason == "goal reached: rho/random"
    assert [entry["updates"] for entry in evaluation.history[:3]] == [5, 10, 15]
    assert model._n_updates <= 16


def test_used_up_before_it_begins() -> None:
    model = make_model()
    model.learn(10_000, StopConditions(max_updates=10))
    stop = StopConditions(max_updates=10)
    model.learn(10_000, stop, reset_num_timesteps=False)
    assert model._n_updates == 10
    assert stop.reason is not None


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
    ("arguments", "named"),
    [
        ({}, "max_updates, max_timesteps"),
        ({"max_updates": 0}, "max_updates.* 0"),
        ({"max_seconds": 0}, "max_seconds.* 0"),
        ({"max_episodes": "1e3"}, "max_episodes.*'1e3'"),
        ({"until": {"field": "x"}}, "until: "),
    ],
)
def test_mistakes_in_rules_are_named(arguments: Any, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        StopConditions(**arguments)


def by_updates(*starts: int) -> list[dict[str, Any]]:
    """Stages of 2, 3, ... points that begin after so many updates, the last one full-sized."""
    stages: list[dict[str, Any]] = [
        {"num_points": 2 + number, "until": Bound("updates", lower=start)}
        for number, start in enumerate(starts)
    ]
    return [*stages, {}]


def starts_of(callback: BaseCallback) -> tuple[int, int]:
    spec = callback.training_env.venv.unwrapped.plan.start_spec  # type: ignore[attr-defined]
    return spec.max_num_points, spec.max_value


def test_stages_follow_each_other_and_rows_change_over() -> None:
    seen: list[tuple[int, tuple[int, int], int]] = []

    def look(callback: BaseCallback) -> None:
        games = callback.training_env.venv.unwrapped.games  # type: ignore[attr-defined]
        fresh = games.half_moves == 0
        largest = int(games.counts[fresh].max()) if bool(fresh.any()) else 0
        seen.append((callback.model._n_updates, starts_of(callback), largest))  # type: ignore[attr-defined]

    model = game_model()
    logs = keep_logs(model)
    curriculum = Curriculum(by_updates(10, 20))
    model.learn(400, [curriculum, StepHook(look)])
    sizes = [size for _, size, _ in seen]
    assert list(dict.fromkeys(sizes)) == [(2, 6), (3, 6), (5, 6)]
    for updates, (points, _), largest in seen:
        assert points == (2 if updates < 10 else 3 if updates < 20 else 5)
        assert largest <= points
    assert max(largest for *_, largest in seen) > 3
    assert [(c["stage"], c["updates"]) for c in curriculum.changes] == [(1, 10), (2, 20)]
    assert logs.values("curriculum/stage")[-1] == 2


@pytest.mark.parametrize("field", ["rho/score", "rho/random"])
def test_metrics_of_evaluations_decide_and_a_later_stage_waits_for_its_own(field: str) -> None:
    """What was measured in one stage says nothing about the next."""
    model = game_model()
    evaluation = RhoEvaluation(["random"], Every(updates=5), games=20, max_value=6)
    condition = {"condition": "bound", "field": field, "lower": 0.0}
    curriculum = Curriculum([{"max_value": 2, "until": condition}, {"until": condition}, {}])
    model.learn(240, [evaluation, curriculum])
    assert [change["updates"] for change in curriculum.changes] == [5, 10]


def test_resume_in_every_stage_is_exact(tmp_path: Path) -> None:
    def callbacks(run_dir: Path) -> list[Any]:
        return [
            Curriculum(by_updates(8, 16)),
            Checkpoints(run_dir, Every(transitions=64), keep_last=99),
        ]

    whole = game_model()
    first = callbacks(tmp_path / "whole")
    whole.learn(320, first)
    stages = set()
    for path in sorted((tmp_path / "whole").glob("checkpoint-*")):
        model, second = game_model(), callbacks(tmp_path / path.name)
        resume(model, path, second)
        stages.add(second[0].stage)
        model.learn(320 - model.num_timesteps, second, reset_num_timesteps=False)
        assert second[0].changes == first[0].changes
        assert equal(model_state(model), model_state(whole))
    assert stages == {0, 1, 2}


def test_stock_algorithms_and_wrappers() -> None:
    stages = [{"num_points": 2, "until": Bound("transitions", lower=80)}, {}]
    for env, curriculum in (
        (VecMonitor(game_model().env), [Curriculum(stages)]),
        (TensorVecEnv(ToyVectorEnv(8)), []),
    ):
        model = DQN("MlpPolicy", env, buffer_size=400, learning_starts=0, device="cpu")
        model.learn(10_000, [*curriculum, StopConditions(max_timesteps=200)])
        assert model.num_timesteps == 200
        for each in curriculum:
            assert [change["transitions"] for change in each.changes] == [80]


@pytest.mark.parametrize(
    ("stages", "error", "named"),
    [
        ([], ValueError, "stages"),
        ({"num_points": 3}, ValueError, "stages"),
        ([3], ValueError, r"stages\[0\]"),
        ([{}, {}], ValueError, r"stages\[0\] .*'until'"),
        ([{"until": Bound("x", lower=1)}], ValueError, r"stages\[0\] .*'until'"),
        ([{"until": 5}, {}], ValueError, r"stages\[0\].until"),
        ([{"until": Bound("x", lower=1)}, {"num_points": 99}], ValueError, "num_points .* 99"),
        ([{"points": 3}], TypeError, "points"),
    ],
)
def test_mistakes_in_stages_are_found_at_the_start(
    stages: Any, error: type[Exception], named: str
) -> None:
    with pytest.raises(error, match=named):
        game_model().learn(80, Curriculum(stages))


def test_environment_without_stages() -> None:
    with pytest.raises(ValueError, match="set_stage"):
        make_model().learn(80, Curriculum([{}]))


def test_other_stages_and_conditions_are_refused_on_resume() -> None:
    curriculum = Curriculum(by_updates(1, 2))
    curriculum.stage = 2
    with pytest.raises(ValueError, match="stage: "):
        Curriculum(by_updates(1)).load_state_dict(curriculum.state_dict())
    curriculum.stage = 1
    with pytest.raises(ValueError, match=r"stages\[1\].until: "):
        Curriculum(by_updates(1)).load_state_dict(curriculum.state_dict())
    state = StopConditions(until=Bound("x", lower=1)).state_dict()
    with pytest.raises(ValueError, match="until: "):
        StopConditions(max_updates=1).load_state_dict(state)
