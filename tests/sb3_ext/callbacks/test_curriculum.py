"""Stages of the environment, one after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecMonitor

from sb3_ext.callbacks import Bound, Checkpoints, Curriculum, RhoEvaluation
from sb3_ext.checkpoints.model_state import model_state
from sb3_ext.checkpoints.resume import resume
from sb3_ext.schedules.frequency import Every
from tests.sb3_ext.callbacks.helpers import StepHook, game_model, keep_logs
from tests.sb3_ext.checkpoints.helpers import equal
from tests.sb3_ext.ddqn.helpers import make_model


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
    env = VecMonitor(game_model().env)
    model = DQN("MlpPolicy", env, buffer_size=400, learning_starts=0, device="cpu")
    curriculum = Curriculum([{"num_points": 2, "until": Bound("transitions", lower=80)}, {}])
    model.learn(160, curriculum)
    assert [change["transitions"] for change in curriculum.changes] == [80]


def test_environment_without_stages() -> None:
    with pytest.raises(ValueError, match="curriculum: the environment has no set_stage"):
        make_model().learn(80, Curriculum([{}]))


def test_mistakes_in_later_stages_are_found_at_the_start() -> None:
    stages = [{"until": Bound("updates", lower=10**6)}, {"num_points": 99}]
    with pytest.raises(ValueError, match="num_points must be between 2 and 5, got 99"):
        game_model().learn(80, Curriculum(stages))
    with pytest.raises(TypeError, match="points"):
        game_model().learn(80, Curriculum([{"points": 3}]))


@pytest.mark.parametrize(
    ("stages", "error", "message"),
    [
        ([], ValueError, "stages must have at least one stage"),
        ({"num_points": 3}, TypeError, "stages must be a list of mappings"),
        ([3], TypeError, r"stages\[0\] must be a mapping, got 3"),
        ([{}, {}], ValueError, r"stages\[0\] needs a condition 'until'"),
        ([{"until": Bound("x", lower=1)}], ValueError, r"stages\[0\] needs no 'until'"),
        ([{"until": 5}, {}], ValueError, r"stages\[0\].until: must be a mapping with the key"),
    ],
)
def test_malformed_stages(stages: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Curriculum(stages)


def test_other_stages_are_refused_on_resume() -> None:
    curriculum = Curriculum(by_updates(1, 2))
    curriculum.stage = 2
    state = curriculum.state_dict()
    with pytest.raises(ValueError, match="stage: got 2, there are 2"):
        Curriculum(by_updates(1)).load_state_dict(state)
    curriculum.stage = 1
    with pytest.raises(ValueError, match=r"stages\[1\].until: 1 conditions were saved, 0 are"):
        Curriculum(by_updates(1)).load_state_dict(curriculum.state_dict())
