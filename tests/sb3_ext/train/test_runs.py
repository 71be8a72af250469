"""What happens to a run of `train`: killed, refused, on a full disk, in a folder of another."""

import os
import re
import signal
import subprocess
import sys

import pytest
import torch

from sb3_ext.ddqn import DDQN
from sb3_ext.runs import command
from sb3_ext.train.play import enjoy
from sb3_ext.train.train import main as train
from tests.sb3_ext.helpers import GAME, SMALL_RUN, bytes_of, run_of
from tests.sb3_ext.runs.killed import full, held_by_another


def test_the_road_to_learn_is_short_and_makes_everything_once(tmp_path, monkeypatch):
    """The road are those modules that read a command and its file and decide what is built."""
    calls = []

    def note(frame, event, _):
        if event == "call":
            calls.append((frame.f_globals.get("__name__", ""), frame.f_code.co_qualname))

    monkeypatch.setattr(DDQN, "learn", lambda *_, **__: sys.setprofile(None))
    sys.setprofile(note)
    try:
        assert train(["-f", str(tmp_path), *SMALL_RUN]) == 0
    finally:
        sys.setprofile(None)
    road = tuple(f"sb3_ext.{room}" for room in ("config", "runs", "train", "ddqn.algorithms"))
    assert len({module for module, _ in calls if module.startswith(road)}) <= 11
    assert calls.count(("sb3_ext.config.sections", "read_mapping")) == 1
    # One for training and one for evaluation, each after one game that tells its arguments.
    assert calls.count(("resgym.envs.environments", "HironakaVectorEnv.__init__")) == 4


def test_a_run_is_resumed_once_at_a_time(tmp_path, capsys):
    assert train(["-f", str(tmp_path), *SMALL_RUN, "-n", "160", "--log-interval", "-2"]) == 0
    run = run_of(tmp_path)
    logged = (run / "metrics.jsonl").read_text()
    assert logged.count("train/loss") <= 1, "-2: nothing but the evaluations and the end"
    assert train(["--resume", str(run)]) == 0
    assert "is finished" in capsys.readouterr().out
    before = bytes_of(run)
    capsys.readouterr()
    with held_by_another(run):
        assert train(["--resume", str(run)]) == 2
    assert capsys.readouterr().err == (
        f"train: --resume: {run} is in use by another process; wait for it, or use another folder\n"
    )
    assert bytes_of(run) == before


def switched_on():
    """Deterministic operations, precision of matrix products, the search for NaN."""
    deterministic = torch.are_deterministic_algorithms_enabled()
    return deterministic, torch.get_float32_matmul_precision(), torch.is_anomaly_enabled()


def at_updates(monkeypatch, look):
    """What a function sees of the model before each of its updates."""
    seen = []
    update = DDQN.train

    def train(model, *given, **named):
        seen.append(look(model))
        update(model, *given, **named)

    monkeypatch.setattr(DDQN, "train", train)
    return seen


def test_switches_last_as_long_as_the_run_and_come_back_with_it(tmp_path, monkeypatch):
    seen = at_updates(monkeypatch, lambda model: switched_on())
    before = switched_on()
    options = ["--deterministic", "--tf32"]
    assert train(["-f", str(tmp_path), *SMALL_RUN, "-n", "160", *options]) == 0
    first = len(seen)
    assert train(["--resume", str(run_of(tmp_path)), "-n", "240", "--detect-anomaly"]) == 0
    assert set(seen[:first]) == {(True, "high", False)}
    assert set(seen[first:]) == {(True, "high", True)}
    assert switched_on() == before


def test_a_file_names_the_buffer_the_loss_and_how_to_explore(tmp_path, monkeypatch, capsys):
    seen = at_updates(monkeypatch, lambda model: model)
    given = [
        "replay_buffer_class:PrioritizedReplayBuffer",
        "replay_buffer_kwargs:{alpha: 0.7, beta: lin_0.4_1.0_20}",
        *("exploration_strategy:boltzmann", "loss:mse", "autocast:true", "evaluation_rows:1"),
        "policy_kwargs:{net_arch: [8], learning_rate_factors: {q_net.0: 0.5}}",
    ]
    assert train(["-f", str(tmp_path), *SMALL_RUN, *given, "-n", "160"]) == 0
    model = seen[-1]
    assert model.replay_buffer.beta(20) == 1.0
    assert (model.loss, model.autocast, model.evaluation_rows) == ("mse", True, 1)
    rates = [group["lr"] for group in model.policy.optimizer.param_groups]
    assert rates[1] == 0.5 * rates[0]
    assert train(["--resume", str(run_of(tmp_path)), "-n", "240"]) == 0
    played = ["--algo", "ddqn", "--env", GAME, "-f", str(tmp_path), "--no-render", "-n", "20"]
    assert enjoy(played) == 0
    capsys.readouterr()
    assert enjoy([*played, "--env-kwargs", "max_num_points:five"]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert "_1: env_kwargs: max_num_points must be an integer, got 'five'" in error


def test_a_full_disk_is_an_error_at_the_end_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(DDQN, "save", full)
    assert train(["-f", str(tmp_path), *SMALL_RUN, "-n", "160", "--save-freq", "-1"]) == 1
    *before, last = capsys.readouterr().err.splitlines()
    assert last.startswith("train: [Errno 28] No space left")
    found = r"train: warning: .*: no best model was written: .*No space left"
    assert any(re.match(found, line) for line in before)


def python(*given, **more):
    done = subprocess.run([sys.executable, *given], capture_output=True, text=True, **more)
    return done.returncode, done.stderr


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_while_modules_are_imported_is_one_line(name, code, tmp_path):
    """Also where the module that is imported, as some in C, lets go of the exception."""
    (tmp_path / "swallows.py").write_text(
        "import os, signal\n"
        f"try: os.kill(os.getpid(), signal.{name})\n"
        "except BaseException: pass\n"
        "def main(given): return 0\n"
    )
    program = (
        "import signal, sys\n"
        "from sb3_ext.runs.command import start\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"import sb3_ext; sb3_ext.__path__.append({str(tmp_path)!r})\n"
        "sys.exit(start('train', 'sb3_ext.swallows'))\n"
    )
    assert python("-c", program) == (code, "train: interrupted\n")


@pytest.mark.parametrize("place", ["__init__", "learn"])
def test_sigterm_before_the_first_step(place, tmp_path, monkeypatch, capsys):
    """While the model is made, where nothing is left; and later, where the run can go on."""
    given = ["-f", str(tmp_path / "logs"), *SMALL_RUN, "-n", "160"]
    with monkeypatch.context() as patched:
        patched.setattr(DDQN, place, lambda *_, **__: os.kill(os.getpid(), signal.SIGTERM))
        assert train(given) == 143
    said, errors = capsys.readouterr()
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    if place == "__init__":
        assert errors == "train: interrupted\n"
        assert list(tmp_path.iterdir()) == []
    else:
        run = run_of(tmp_path / "logs")
        assert f"train ends: SIGTERM; --resume {run} continues there" in said
        assert train(["--resume", str(run)]) == 0
        assert "160 transitions" in capsys.readouterr().out


def test_ctrl_c_is_code_130_wherever_it_comes(tmp_path):
    (tmp_path / "stops.py").write_text(
        "from sb3_ext.runs.command import command\n"
        "main = command('train')(lambda given: exec('raise KeyboardInterrupt'))\n"
        "raise SystemExit(main([]))\n"
    )
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    found = python("-m", "stops", env={**os.environ, "PYTHONPATH": path})
    assert found == (130, "train: interrupted\n")


def test_an_error_without_a_message_says_where_it_was_raised(capsys):
    @command.command("train")
    def main(_):
        raise ValueError

    assert main([]) == 2
    where, found = capsys.readouterr().err.rstrip().split(": ", 2)[1:]
    assert where.startswith(f"ValueError at {__file__}, line ")
    assert found == "raise ValueError"
