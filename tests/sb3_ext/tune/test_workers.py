"""Workers of one study: they share its trials, and none is lost with a process."""

import csv
import signal
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import optuna
import pytest
import yaml
from optuna.storages import RDBStorage
from optuna.trial import TrialState

from sb3_ext.tune.tune import ERROR, counts, main
from tests.sb3_ext.tune.parabola import study

ROOT = Path(__file__).resolve().parents[3]


def tune(folder, *more, **changes):
    """The command in this process, with its results in a folder."""
    path = folder / "study.yml"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(study(**changes)))
    return main([str(path), "--out", str(folder), "--no-progress", *more])


def process(folder, *more):
    """A worker with the study of a folder."""
    command = [sys.executable, "-m", "tests.sb3_ext.tune.parabola", str(folder / "study.yml")]
    given = [*command, "--out", str(folder), "--heartbeat", "1", *more]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(given, cwd=ROOT, text=True, **pipes)


def trials_of(folder):
    """All trials in the storage, those that do not count as well."""
    storage = RDBStorage(f"sqlite:///{folder}/study.db")
    return optuna.load_study(study_name="parabola", storage=storage).trials


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def held(folder):
    return sorted(folder.glob("trial-*"))


@pytest.fixture
def folder(tmp_path):
    """A folder with a study whose trials wait for the file `go`."""
    (tmp_path / "study.yml").write_text(yaml.safe_dump(study(settings={"held": True})))
    return tmp_path


def test_two_workers_share_the_trials_and_make_none_twice(folder):
    workers = [process(folder, "--no-progress") for _ in range(2)]
    wait_for(lambda: len({path.name.split("-")[1] for path in held(folder)}) == 2)
    (folder / "go").touch()
    for worker in workers:
        _, told = worker.communicate(timeout=120)
        assert (worker.returncode, told) == (0, "")
    done = [trial for trial in trials_of(folder) if counts(trial)]
    assert [trial.state for trial in done] == [TrialState.COMPLETE] * 6
    made = [path.name.split("-", 2)[2] for path in held(folder)]
    assert sorted(made) == sorted(str(trial.params["x"]) for trial in done)
    assert len(set(made)) == 6


@pytest.mark.long
def test_a_trial_whose_worker_is_killed_is_tried_again(folder):
    first = process(folder, "--trials", "2")
    wait_for(lambda: held(folder))
    first.send_signal(signal.SIGKILL)
    first.communicate()
    (lost,) = trials_of(folder)
    assert lost.state is TrialState.RUNNING
    (folder / "go").touch()
    second = process(folder, "--trials", "2")
    _, told = second.communicate(timeout=120)
    assert second.returncode == 0, told
    trials = trials_of(folder)
    assert trials[0].state is TrialState.FAIL
    done = [trial for trial in trials if counts(trial)]
    assert [trial.state for trial in done] == [TrialState.COMPLETE] * 2
    assert lost.params in [trial.params for trial in done]


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)]
)
def test_a_worker_that_is_stopped_gives_its_trial_back(number, folder):
    first = process(folder, "--trials", "1")
    wait_for(lambda: held(folder) and any(trial.intermediate_values for trial in trials_of(folder)))
    first.send_signal(number)
    printed, told = first.communicate(timeout=60)
    assert first.returncode == 128 + number, told
    assert "the same command with --out" in printed
    assert "Traceback" not in told
    given_back, waiting = trials_of(folder)
    assert waiting.state is TrialState.WAITING
    (folder / "go").touch()
    assert main([str(folder / "study.yml"), "--out", str(folder), "--trials", "1"]) == 0
    (done,) = (trial for trial in trials_of(folder) if counts(trial))
    assert done.params == given_back.params


def parameters(folder):
    return [(trial.params["x"], trial.value) for trial in trials_of(folder)]


def test_the_same_seed_is_the_same_study_also_in_two_parts(tmp_path):
    once, parts, other = (tmp_path / name for name in ("once", "parts", "other"))
    assert tune(once, trials=9) == 0
    assert tune(parts, "--trials", "5", trials=9) == 0
    assert tune(parts, trials=9) == 0
    assert tune(other, trials=9, seed=1) == 0
    assert parameters(once) == parameters(parts)
    assert len({x for x, _ in parameters(once)}) == 9
    assert not {x for x, _ in parameters(once)} & {x for x, _ in parameters(other)}


def test_settings_that_do_not_fit_are_recorded_and_the_study_goes_on(tmp_path, capsys):
    kinds = {"x": {"low": 0.0, "high": 1.0}, "mode": {"choices": ["plain", "broken"]}}
    assert tune(tmp_path, search=kinds, sampler={"name": "random"}, trials=9) == 0
    trials = trials_of(tmp_path)
    failed = [trial for trial in trials if trial.state is TrialState.FAIL]
    assert 0 < len(failed) < len(trials) == 9
    for trial in trials:
        assert (trial.params["mode"] == "broken") == (trial in failed)
    wanted = "ValueError: mode: must be plain, got broken"  # one line
    assert {trial.user_attrs[ERROR] for trial in failed} == {wanted}
    assert capsys.readouterr().out.count(wanted) == len(failed)
    rows = list(csv.DictReader((tmp_path / "trials.csv").read_text().splitlines()))
    assert [row["state"] == "FAIL" for row in rows] == [trial in failed for trial in trials]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"value": ["valu"], "trials": 1}, "value: unknown metric 'valu'; did you mean 'value'"),
        ({"settings": {"mode": "broken"}, "trials": 2}, "no trial was finished"),
    ],
)
def test_a_study_without_any_result_says_so(changes, message, tmp_path, capsys):
    assert tune(tmp_path, **changes) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "best.yml").exists()


def test_hopeless_trials_are_pruned_and_without_a_pruner_none_is(tmp_path):
    """Every measurement of a trial is its value, so the median rule can be said by hand."""
    changes = {"sampler": {"name": "random"}, "trials": 9}
    pruner = {"name": "median", "n_startup_trials": 2}
    assert tune(tmp_path / "pruned", pruner=pruner, **changes) == 0
    assert tune(tmp_path / "control", **changes) == 0
    found, all_of_them = trials_of(tmp_path / "pruned"), trials_of(tmp_path / "control")
    assert {trial.state for trial in all_of_them} == {TrialState.COMPLETE}
    assert [trial.params for trial in found] == [trial.params for trial in all_of_them]
    finished = []
    for trial, full in zip(found, all_of_them, strict=True):
        hopeless = len(finished) >= 2 and full.value > median(finished)
        assert trial.state is (TrialState.PRUNED if hopeless else TrialState.COMPLETE)
        if not hopeless:
            finished.append(full.value)
    assert TrialState.PRUNED in {trial.state for trial in found}
    # So are those of a command that ends by an exception when it may not go on.
    ended = {**changes, "pruner": pruner, "settings": {"mode": "ends"}}
    assert tune(tmp_path / "ended", **ended) == 0
    assert [trial.state for trial in trials_of(tmp_path / "ended")] == [t.state for t in found]


def test_results_are_a_table_and_the_best_file(tmp_path, capsys):
    assert tune(tmp_path, trials=8) == 0
    heading, first, *_ = capsys.readouterr().out.splitlines()
    best = min(trials_of(tmp_path), key=lambda trial: trial.value)
    shown = dict(zip(heading.split(), first.split(), strict=True))
    assert shown["number"] == str(best.number)
    assert (shown["state"], float(shown["value"])) == ("COMPLETE", pytest.approx(best.value))
    assert yaml.safe_load((tmp_path / "best.yml").read_text())["x"] == best.params["x"]
    # Another study of the same name is refused.
    assert tune(tmp_path, search={"x": {"low": -10.0, "high": 11.0}}) == 2
    assert "holds a run with another search" in capsys.readouterr().err
    there = f"sqlite:///{tmp_path}/study.db"
    assert tune(tmp_path / "b", "--storage", there, search={"x": {"low": -1.0, "high": 1.0}}) == 2
    assert "name: got 'parabola'" in capsys.readouterr().err
