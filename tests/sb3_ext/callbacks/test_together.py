"""All callbacks at once: no trace in training, none in memory, and exact after a resume."""

import gc
import re
from pathlib import Path

import torch

from sb3_ext import callbacks
from sb3_ext.adapter.seam import walk_callbacks
from sb3_ext.callbacks.base import Every
from sb3_ext.checkpoints.models import model_state
from sb3_ext.checkpoints.resume import resume
from sb3_ext.runs.checkpoint import list_checkpoints
from tests.sb3_ext.helpers import equal, game_model, keep_logs


def everything(run_dir, keep_last=2):
    sizes = {"games": 20, "max_value": 6, "save_path": run_dir}
    return [
        callbacks.RhoEvaluation(["random"], Every(updates=10), at_start=True, **sizes),
        callbacks.Curriculum(
            [{"num_points": 3, "until": callbacks.Bound("updates", lower=15)}, {}]
        ),
        callbacks.GrowingStarts(0.5),
        callbacks.ActionCounts(Every(updates=6)),
        callbacks.LayerStatistics(Every(updates=5)),
        callbacks.SampleGames(run_dir, ["random"], Every(updates=20), games=1),
        callbacks.Timers(Every(updates=5)),
        callbacks.SystemStatistics(Every(updates=5)),
        callbacks.StopConditions(
            max_updates=10**6, max_episodes=10**6, until=callbacks.Bound("rho/random", lower=9)
        ),
        callbacks.Signals(),
        callbacks.Checkpoints(run_dir, Every(transitions=64), keep_last=keep_last),
    ]


def test_the_list_is_complete(tmp_path):
    kinds = {type(each).__name__ for each in everything(tmp_path)}
    assert kinds == set(callbacks.__all__) - {"Bound", "CALLBACKS", "Converged", "evaluate_policy"}


def test_exact_after_a_resume(tmp_path):
    whole = game_model()
    first = everything(tmp_path / "whole", keep_last=99)
    whole.learn(320, first)
    paths = list_checkpoints(tmp_path / "whole")
    assert len(paths) == 5
    for path in paths[1:4:2]:
        model = game_model()
        second = everything(tmp_path / path.name)
        resume(model, path, second)
        model.learn(320 - model.num_timesteps, second, reset_num_timesteps=False)
        assert equal(model_state(model), model_state(whole))
        for one, other in zip(walk_callbacks(first), walk_callbacks(second), strict=True):
            if hasattr(one, "state_dict"):
                states = [without_seconds(each.state_dict()) for each in (one, other)]
                assert equal(*states), type(one).__name__
        history = second[0].history
        assert {0, 10, 20} < {entry["updates"] for entry in history}
        seconds = [entry["training_seconds"] for entry in history]
        assert seconds == sorted(seconds)


def without_seconds(state):
    if isinstance(state, dict):
        return {k: without_seconds(v) for k, v in state.items() if "seconds" not in k}
    return [without_seconds(each) for each in state] if isinstance(state, list) else state


def test_b11_nothing_piles_up(tmp_path):
    """The number of tensors alive does not depend on how long training was."""

    def alive():
        gc.collect()
        return sum(issubclass(type(each), torch.Tensor) for each in gc.get_objects())

    model = game_model(buffer_size=160)
    every = everything(tmp_path)
    model.learn(240, every)
    before = alive()
    model.learn(240, every, reset_num_timesteps=False)
    assert alive() <= before + 2


def test_every_logged_key_is_documented(tmp_path):
    text = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text(encoding="utf-8")
    text = text.partition("## The two-player trainer")[0]
    documented = {
        re.sub(r"<[^>]+>", "[^/]+", re.escape(key).replace("\\<", "<").replace("\\>", ">"))
        for key in re.findall(r"^\| `([^`]+)`", text, flags=re.MULTILINE)
    }
    model = game_model(log_interval_updates=1)
    logs = keep_logs(model)
    model.learn(240, everything(tmp_path))
    keys = {key for dump in logs.dumps for key in dump}
    assert len(keys) > 30
    assert not {k for k in keys if not any(re.fullmatch(each, k) for each in documented)}
