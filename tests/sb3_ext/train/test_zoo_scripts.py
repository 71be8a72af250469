"""Videos and learning curves of a trained run."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rl_zoo3.utils
import yaml
from matplotlib import pyplot
from PIL import Image

from resgym.render.positions import HEIGHT, WIDTH
from sb3_ext.adapter import TensorVecEnv
from sb3_ext.train.play import record_video
from sb3_ext.train.train import main as run_train
from sb3_ext.train.zoo_scripts import plot_train

HOST = "resgym/HironakaHost-v0"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    sizes = ["n_envs:8", "learning_starts:64", "batch_size:16", "buffer_size:1000"]
    more = ["policy_kwargs:{net_arch: [16]}", "env_kwargs:{opponent: choose_last}"]
    arguments = ["--algo", "ddqn", "--env", HOST, "-n", "480", "-f", str(folder), "--seed", "1"]
    quiet = ["--eval-freq", "-1", "--verbose", "0"]
    assert run_train([*arguments, *quiet, "-params", *sizes, *more]) == 0
    return folder


def test_a_trained_model_is_filmed_against_its_opponent(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from moviepy import VideoFileClip

    made: list[tuple[type, dict[str, Any]]] = []
    make = rl_zoo3.utils.create_test_env

    def spy(env_id: str, **kwargs: Any) -> Any:
        env = make(env_id, **kwargs)
        made.append((type(env), kwargs["env_kwargs"]))
        return env

    monkeypatch.setattr(rl_zoo3.utils, "create_test_env", spy)
    loader = yaml.UnsafeLoader
    arguments = ["--algo", "ddqn", "--env", HOST, "-f", str(runs), "-o", str(tmp_path)]
    assert record_video([*arguments, "-n", "4", "--n-envs", "1"]) == 0
    (path,) = tmp_path.glob("*.mp4")
    with VideoFileClip(str(path)) as film:
        assert film.fps == 2
        frames = [np.array(frame) for frame in film.iter_frames()]
    assert len(frames) >= 4
    assert frames[0].shape == (HEIGHT, WIDTH, 3)
    # White paper with a drawing on it that changes from move to move.
    assert 0.3 < (frames[0] > 240).all(2).mean() < 0.99
    assert np.abs(frames[0].astype(int) - frames[1]).max() > 100
    assert made == [(TensorVecEnv, {"opponent": "choose_last", "render_mode": "rgb_array"})]
    assert yaml.UnsafeLoader is loader
    assert rl_zoo3.utils.create_test_env is spy


def test_a_missing_run_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert record_video(["--algo", "ddqn", "--env", HOST, "-f", str(tmp_path)]) == 2
    error = capsys.readouterr().err.strip()
    assert error.startswith("record_video: ")
    assert "\n" not in error


def test_curves_are_written(runs: Path, tmp_path: Path) -> None:
    target = tmp_path / "curve.png"
    arguments = ["-a", "ddqn", "-e", "HironakaHost", "-f", str(runs), "-w", "5", "-o", str(target)]
    assert plot_train([*arguments, "-y", "length"]) == 0
    with Image.open(target) as picture:
        assert picture.size == (640, 480)
    assert pyplot.get_fignums() == []


@pytest.mark.filterwarnings("ignore:No artists with labels")
@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["-w", "100000", "-o", "curve.png"], "nothing to plot"),
        (["-w", "5", "-o", "curve.nonsense"], "nonsense"),
        (["-w", "5"], "there is no display: give -o FILE"),
        (["-w", "0"], "episode-window must be at least 1, got 0"),
        (["--figsize", "0", "9"], "figsize must be 1 to 100 inches, got [0, 9]"),
        (["-f", "nowhere"], "exp-folder: there is no folder nowhere/ddqn"),
        (["-f", "old"], "a monitor file of old/ddqn/HironakaHost_1 is damaged"),
    ],
)
def test_curves_that_cannot_be_drawn(
    runs: Path,
    tmp_path: Path,
    more: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (run := tmp_path / "old/ddqn/HironakaHost_1").mkdir(parents=True)
    (run / "0.monitor.csv").write_text("r,l,t\n1,2,3\n")  # without its first line
    pyplot.switch_backend("Agg")
    assert plot_train(["-a", "ddqn", "-e", "HironakaHost", "-f", str(runs), *more]) == 2
    error = capsys.readouterr().err.strip()
    assert message in error
    assert "\n" not in error
    assert pyplot.get_fignums() == []


@pytest.mark.parametrize("name", ["matplotlib", "pandas"])
def test_a_missing_library_names_its_extra(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda n: None if n == name else found(n))
    assert plot_train(["-a", "ddqn", "-e", "HironakaHost", "-f", "."]) == 2
    assert f"needs {name}, which is not installed: resgym[" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["record_video", "plot_train"])
def test_the_commands_answer_help(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sb3_ext", command, "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert "--algo" in done.stdout
