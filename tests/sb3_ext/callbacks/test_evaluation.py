"""Evaluation during training: when, of what, without a trace in training, by legal actions."""

import json
from functools import partial
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.callbacks import MaskableEvalCallback
from stable_baselines3 import PPO
from stable_baselines3.common import evaluation
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize

from resgym.measure.rho import rho
from sb3_ext.adapter import TensorVecEnv
from sb3_ext.callbacks import RhoEvaluation, SampleGames, evaluate_policy
from sb3_ext.callbacks.base import Every
from sb3_ext.callbacks.evaluation import Evaluation, player_of
from sb3_ext.ddqn import DDQN
from sb3_ext.ddqn.algorithms import ALGORITHMS
from sb3_ext.ddqn.legality import Masked, with_masks
from sb3_ext.runs.checkpoint import load_checkpoint
from tests.fakes import MaskedToy, ToyEnv, ToyVectorEnv
from tests.sb3_ext.helpers import SIZES, StepHook, equal, game_model, keep_logs, make_model, weights


def measuring(opponents=("random",), updates=10, **arguments):
    return RhoEvaluation([*opponents], Every(updates=updates), games=20, max_value=6, **arguments)


def test_b22_evaluates_at_the_end_too_and_the_interval_goes_on_over_calls():
    model = game_model()
    callback = measuring(at_start=True)
    for _ in range(4):
        model.learn(64, callback, reset_num_timesteps=False)
    measured = [entry["updates"] for entry in callback.history]
    assert measured == sorted(set(measured)), "no version twice"
    assert {0, 10, 20, model.num_updates} <= set(measured)
    assert len(measured) <= 7


@pytest.mark.parametrize("seat", ["host", "agent"])
def test_b23_evaluation_leaves_no_trace_in_training(seat):
    opponents = ["random", "choose_first" if seat == "host" else "zeillinger"]
    ends = []
    for callback in (None, measuring(opponents, updates=3)):
        model = game_model(seat)  # which seeds the global generators
        model.learn(160, callback)
        ends.append((weights(model), torch.get_rng_state(), np.random.get_state()[1].tolist()))
    (plain, *generators), (evaluated, *others) = ends
    assert equal(plain, evaluated)
    assert equal(generators, others)


def give_rho(monkeypatch, scores):
    """Makes the next measurements have these results."""
    about = {"win_rate": 1.0, "shortest": 1, "longest": 9, "interval": (0.0, 9.0)}
    results = iter(SimpleNamespace(rho=score, **about) for score in scores)
    monkeypatch.setattr("sb3_ext.callbacks.evaluation.rho", lambda *pair, **game: next(results))


@pytest.mark.parametrize(
    ("seat", "best", "pairs", "scores", "kept"),
    [
        ("host", "worst", [(1, 2), (4, 3), (2, 9)], [1, 3, 2], 3),
        ("agent", "worst", [(1, 2), (1, 0), (3, 0)], [2, 1, 3], 1),
        ("host", "mean", [(1, 3), (2, 4), (1, 1)], [2, 3, 1], 3),
        ("agent", "random'", [(0, 2), (9, 1), (0, 3)], [2, 1, 3], 1),
    ],
)
def test_best_version_is_kept(seat, best, pairs, scores, kept, tmp_path, monkeypatch):
    give_rho(monkeypatch, [float(rho) for pair in pairs for rho in pair])
    snapshots = {}

    class Watched(RhoEvaluation):
        def act(self):
            super().act()
            snapshots[self.history[-1]["score"]] = weights(self.model)

    model = game_model(seat)
    logs = keep_logs(model)
    callback = Watched(["random"] * 2, Every(updates=10), best=best, save_path=tmp_path)
    model.learn(64 + 8 * 24, callback)
    assert callback.best_score == kept
    assert logs.values("rho/best")[-1] == kept
    saved = load_checkpoint(tmp_path / "best")
    assert equal(saved["policy"], snapshots[kept])
    assert saved["evaluation"]["score"] == kept
    assert equal(weights(DDQN.load(tmp_path / "best_model.zip", device="cpu")), snapshots[kept])
    assert [entry["score"] for entry in json.loads((tmp_path / "rho.json").read_text())] == scores


def test_a_spoiled_model_does_not_become_the_best(tmp_path):
    @torch.no_grad()
    def spoil(callback):
        next(callback.model.q_net.parameters()).fill_(torch.nan)

    with pytest.raises(FloatingPointError):
        game_model().learn(400, [StepHook(spoil), measuring(save_path=tmp_path)])
    assert not list(tmp_path.glob("best*"))


def test_an_environment_without_points_cannot_be_measured():
    with pytest.raises(ValueError, match="not the points"):
        make_model().learn(8, RhoEvaluation(["random"], Every(updates=1)))


@pytest.mark.parametrize("seat", ["host", "agent"])
def test_what_is_measured_is_the_model_without_exploring(seat):
    other = "choose_last" if seat == "host" else "zeillinger"
    model = game_model(seat)
    callback = RhoEvaluation([other], Every(updates=5), games=40, seed=3)
    model.learn(80, callback)
    callback.act()
    logged = model.logger.name_to_value
    mine = player_of(model)
    pair = (mine, other) if seat == "host" else (other, mine)
    last = rho(*pair, games=40, seed=3, **{**SIZES, "max_value": 20})
    assert logged[f"win_rate/{other}"] == last.win_rate
    entry = callback.history[-1]
    assert entry["rho"] == {other: last.rho}
    assert entry["score"] == last.rho
    assert entry["interval_95"] == {other: list(last.interval)}
    worst = last.longest if seat == "host" else last.shortest
    assert logged[f"worst_length/{other}"] == worst > 0


@pytest.mark.parametrize("seat", ["host", "agent"])
def test_games_are_written_down(seat, tmp_path):
    opponents = ["choose_first", "random"] if seat == "host" else ["zeillinger", "all_coord"]
    samples = SampleGames(tmp_path, opponents, Every(updates=10), games=2, max_value=6)
    model = game_model(seat)
    starts = []
    model.learn(240, samples)
    folders = sorted((tmp_path / "games").iterdir())
    assert [int(folder.name) for folder in folders] == [10, 20, model.num_updates]
    for folder in folders:
        found = {path.name for path in folder.iterdir()}
        assert found == {f"{name}{end}" for name in opponents for end in (".json", ".txt")}
        for name in opponents:
            text = (folder / f"{name}.txt").read_text()
            title = f"trained {seat} against {name}, after {int(folder.name)} updates\n"
            assert text.startswith(title)
            assert [f"\ngame {number}\n\nstart\n" in text for number in (1, 2, 3)] == [1, 1, 0]
            games = json.loads((folder / f"{name}.json").read_text())
            for game in games:
                assert len(game["positions"]) == game["moves"] + 1
                assert game["finished"] == (len(game["positions"][-1]) == 1)
            starts.append([game["positions"][0] for game in games])
    assert all(each == starts[0] for each in starts)
    assert starts[0][0] != starts[0][1]


strict = partial(ToyVectorEnv, 2, illegal="error")
ENVIRONMENTS = {
    "tensors": lambda: TensorVecEnv(strict()),
    "arrays": lambda: DummyVecEnv([lambda: Monitor(ToyEnv(illegal="error"))] * 2),
    "normalized": lambda: VecNormalize(TensorVecEnv(strict())),
    "single": lambda: Monitor(ToyEnv(illegal="error")),
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_ours_and_stock_callbacks(name, tmp_path):
    make = ENVIRONMENTS[name]
    model = make_model(learning_starts=10_000) if name != "normalized" else make_model(make())
    for each in (make(), make()):
        evaluate_policy(model, each, 6, deterministic=False)
    callbacks = [kind(make(), eval_freq=5) for kind in (EvalCallback, MaskableEvalCallback)]
    if name != "single":
        callbacks.append(Evaluation(make(), tmp_path, eval_freq=5))
    model.learn(100, callbacks)
    assert all(np.isfinite(each.best_mean_reward) for each in callbacks)


@pytest.mark.filterwarnings("error::UserWarning:stable_baselines3.common.evaluation")
def test_stock_functions_find_the_masks_of_what_was_shown_without_a_warning():
    for model in (
        make_model(),
        ALGORITHMS["ppo_mask"]("MlpPolicy", TensorVecEnv(strict()), n_steps=4, batch_size=8),
    ):
        for env in (TensorVecEnv(strict()), VecMonitor(TensorVecEnv(strict()))):
            evaluation.evaluate_policy(model, env, 6, deterministic=False)
        # Another object, also an equal one, is nobody's.
        assert model.predict(env.reset().copy())[0].shape == (2,)


def test_who_is_masked():
    env = TensorVecEnv(strict())
    host = TensorVecEnv(gymnasium.make_vec("resgym/HironakaHost-v0", num_envs=2))
    maskable = MaskablePPO("MlpPolicy", env, n_steps=4, batch_size=8)
    assert isinstance(with_masks(maskable, env), Masked)
    for model, other in (
        (PPO("MlpPolicy", env, n_steps=4, batch_size=8), env),
        (make_model(mask_source="none"), env),
        (make_model(host), host),
    ):
        assert with_masks(model, other) is model
    named = TensorVecEnv(MaskedToy(2, illegal="error"))
    for algorithm in (make_model(named), MaskablePPO("MultiInputPolicy", named, n_steps=4)):
        for each in (named, MaskedToy(2, illegal="error")):
            evaluate_policy(algorithm, each, 4)
