"""What is decided by numbers: conditions, the end of training, the stages of a curriculum."""

import json

import pytest
from stable_baselines3 import DQN
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecMonitor

from sb3_ext.callbacks import (
    Bound,
    Checkpoints,
    Curriculum,
    GrowingStarts,
    RhoEvaluation,
    StopConditions,
)
from sb3_ext.callbacks.base import Every
from sb3_ext.checkpoints.resume import resume
from sb3_ext.runs import stopping as module
from sb3_ext.runs.stopping import parse_conditions
from tests.sb3_ext.helpers import StepHook, game_model, keep_logs, make_model


def bound(field, **arguments):
    return {"condition": "bound", "field": field, **arguments}


def near(**arguments):
    return {"condition": "converged", "field": "x", **arguments}


@pytest.mark.parametrize(
    ("condition", "values", "expected"),
    [
        (bound("x", lower=1, upper=2), [0.9, 1, 2, 2.1], "0110"),
        (bound("x", lower=0), [-1, 0], "01"),  # `lower or -inf` would drop it
        (bound("x", upper=0), [1, 0], "01"),
        (bound("x", lower=1, times=3), [1, 1, 0, 1, 1, 1, 0], "0000010"),
        (near(window=3, tolerance=0.5, confidence=1.0), [0, 9, 9.2, 8.9, 20], "00010"),
        (near(window=4, tolerance=0.9, confidence=0.75), [10, 10.1, 10, 13], "0001"),
        (near(window=4, tolerance=0.9, confidence=0.76), [10, 10.1, 10, 13], "0000"),
    ],
)
def test_conditions_follow_the_newest_values_also_through_json(condition, values, expected):
    for split in range(len(values) + 1):
        (now,) = parse_conditions(condition)
        met = ""
        for number, value in enumerate(values):
            if number == split:
                state = json.loads(json.dumps(now.state_dict()))
                (now,) = parse_conditions(condition)
                now.load_state_dict(state)
            now.observe({"x": value, "other": 1e9})
            now.observe({"y": 1.5})  # nothing of its own
            met += str(int(now.met))
        assert met == expected
    assert parse_conditions(now) == [now]


BOTH = [Bound("updates", lower=5), Bound("transitions", lower=200)]
LOGGED = Bound("train/n_updates", lower=12)


@pytest.mark.parametrize(
    ("rules", "reason", "updates", "transitions"),
    [
        ({"max_updates": 21}, "max_updates 21 reached", (21, 21), (0, 10_000)),
        ({"max_timesteps": 300}, "max_timesteps 300 reached", (1, 500), (304, 304)),
        ({"max_updates": 10, "max_timesteps": 800}, "max_updates 10", (10, 10), (0, 400)),
        ({"max_episodes": 30, "max_updates": 99}, "max_episodes 30 reached", (1, 25), (60, 240)),
        ({"until": BOTH}, "goal reached: updates, transitions", (5, 500), (200, 216)),
        ({"until": LOGGED, "max_updates": 500}, "goal reached: train/n_up", (12, 14), (0, 1000)),
    ],
)
def test_the_first_rule_ends_training(rules, reason, updates, transitions):
    model = make_model(log_interval_updates=4)
    stop = StopConditions(**rules)
    model.learn(10_000, stop)
    assert reason in str(stop.reason)
    assert updates[0] <= model.num_updates <= updates[1]
    assert transitions[0] <= model.num_timesteps <= transitions[1]
    done = model.num_updates
    again = StopConditions(max_updates=done)
    model.learn(10_000, again, reset_num_timesteps=False)  # used up before it begins
    assert (model.num_updates, again.reason is None) == (done, False)


def test_budgets_go_on_after_a_resume(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])

    def pass_time(callback):
        now[0] += 1.0

    def callbacks():
        stop = StopConditions(max_episodes=10**6, max_seconds=12)
        return [StepHook(pass_time), stop, Checkpoints(tmp_path, Every(transitions=10**9))]

    first = callbacks()
    second = callbacks()
    model = make_model()
    make_model().learn(5 * 8, first)
    now[0] += 500.0  # the program was not running
    resume(model, tmp_path, second)
    state = second[1].state_dict()
    assert state == first[1].state_dict()
    assert (state["episodes"] > 0, state["seconds"]) == (True, 5.0)
    model.learn(10_000, second, reset_num_timesteps=False)
    assert model.num_timesteps == 12 * 8


def test_stages_follow_each_other_and_rows_change_over():
    seen = []

    def look(callback):
        env = callback.training_env.venv.unwrapped
        fresh = env.games.half_moves == 0
        spec = env.plan.start_spec
        largest = int(env.games.counts[fresh].max()) if bool(fresh.any()) else 0
        seen.append((callback.model.num_updates, (spec.max_num_points, spec.max_value), largest))

    model = game_model()
    logs = keep_logs(model)
    ends = ((2, 10), (3, 20))
    stages = [{"num_points": n, "until": bound("updates", lower=end)} for n, end in ends]
    model.learn(400, [Curriculum([*stages, {}]), StepHook(look)])
    assert list(dict.fromkeys(size for _, size, _ in seen)) == [(2, 6), (3, 6), (5, 6)]
    for updates, (points, _), largest in seen:
        assert points == (2 if updates < 10 else 3 if updates < 20 else 5)
        assert largest <= points
    assert max(largest for *_, largest in seen) > 3
    assert logs.values("curriculum/stage")[-1] == 2


@pytest.mark.parametrize("algorithm", ["ddqn", "dqn", "single environments"])
def test_starts_grow_in_equal_steps_with_the_progress(algorithm):
    model = game_model()
    seen = []
    if algorithm != "ddqn":
        env = model.env
        if algorithm != "dqn":
            sizes = {"max_num_points": 5, "max_value": 6, "opponent": "random"}
            env = make_vec_env("resgym/HironakaHost-v0", 8, env_kwargs=sizes)
        model = DQN("MlpPolicy", env, buffer_size=400, device="cpu")
    look = StepHook(lambda each: seen.extend(each.training_env.get_attr("plan", [0])))
    model.learn(8 * 100, [GrowingStarts(0.8), look])
    # Of 5 points and values to 6; the progress is that before the step.
    sizes = [(2, 1), (2, 2), (2, 2), (2, 3), (3, 4), (4, 4), (4, 5), (4, 5), (5, 6)]
    starts = [plan.start_spec for plan in seen[5::10]]
    found = [(each.max_num_points, each.max_value) for each in starts]
    assert found == [sizes[min(step, 8)] for step in range(10)]
    for part in (0, 1.5):
        with pytest.raises(ValueError, match="part"):
            GrowingStarts(part)
    for stages in (GrowingStarts(), Curriculum([{}])):
        with pytest.raises(ValueError, match="env must have set_stage"):
            make_model().learn(8, stages)


@pytest.mark.parametrize("field", ["rho/score", "rho/random"])
def test_b22_a_later_stage_waits_for_measurements_of_its_own_and_no_longer(field):
    evaluation = RhoEvaluation(["random"], Every(updates=5), games=20, max_value=6)
    until = bound(field, lower=0.0)
    curriculum = Curriculum([{"max_value": 2, "until": until}, {"until": until}, {}])
    began = {}
    hook = StepHook(lambda each: began.setdefault(curriculum.stage, each.model.num_updates))
    model = game_model(log_interval_updates=1)  # what is logged besides counts no second time
    for steps in (88, 152):  # the measurement at the end of a part counts neither
        model.learn(steps, [evaluation, curriculum, hook])
    assert began == {0: 0, 1: 5, 2: 10}


def test_stock_algorithms_and_wrappers():
    curriculum = Curriculum([{"num_points": 2, "until": Bound("transitions", lower=80)}, {}])
    env = VecMonitor(game_model().env)
    model = DQN("MlpPolicy", env, buffer_size=400, learning_starts=0, device="cpu")
    model.learn(10_000, [curriculum, StopConditions(max_timesteps=200)])
    assert (model.num_timesteps, curriculum.stage) == (200, 1)
