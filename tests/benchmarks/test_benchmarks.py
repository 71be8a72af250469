"""The benchmark programs: what they measure, keep, refuse and show. No figure is judged here."""

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch

from benchmarks import environment, measure, report, results, run, training

ROOT = Path(__file__).resolve().parents[2]
SHORT = ["--repeats", "2", "--seconds", "0.001", "--threads", "1", "--devices", "cpu"]
SHORT += ["--noise", "1000"]  # of so short ones nothing is expected


class Clock:
    """A subject whose every parallel step takes a second of a clock that the test owns."""

    games, device, threads, figures = 10, "cpu", 1, {"played": 1.0}

    def __init__(self, clock, seconds=1.0, games=10):
        self.clock, self.seconds, self.games, self.closed = clock, seconds, games, False
        self.calls = []

    def steps(self, number):
        self.calls.append(number)
        self.clock[0] += number * self.seconds

    def wait(self):
        pass

    def close(self):
        self.closed = True


@pytest.mark.parametrize("cpu_time", [False, True])
def test_a_rate_is_moves_over_seconds(cpu_time, monkeypatch):
    clock = [0.0]
    name = "process_time" if cpu_time else "perf_counter"
    monkeypatch.setattr(measure.time, name, lambda: clock[0])
    slow, quick = Clock(clock), Clock(clock, seconds=0.125, games=3)
    makers = [("slow", lambda: slow), ("quick", lambda: quick)]
    said = []
    found, absent, about = measure.side_by_side(makers, 3, 4.0, said.append, cpu_time)
    assert found["slow"].rates == [10.0] * 3
    assert found["quick"].rates == [24.0] * 3
    assert found["slow"].warm_up_seconds == 1.0
    assert slow.calls[-3:] == [4] * 3
    assert quick.calls[-3:] == [32] * 3
    assert found["slow"].figures == {"played": 1.0}
    assert not absent
    assert about["slow"] == {"device": "cpu", "threads": 1}
    assert slow.closed
    assert quick.closed
    # They take turns: neither is measured twice in a row.
    repeats = [text.split(":")[0] for text in said if "repeat" in text]
    assert repeats == ["slow", "quick"] * 3


def test_what_cannot_be_made_is_named_and_the_rest_is_measured():
    missing = Mock(side_effect=ImportError("JAX is not installed\nmore"))
    makers = [("peer", missing), ("there", lambda: Clock([0.0]))]
    found, absent, _ = measure.side_by_side(makers, 1, 1e-6, lambda _: None)
    assert [*found] == ["there"]
    assert absent == {"peer": "JAX is not installed"}


def test_peers_whose_package_is_missing_say_how_to_get_it(capsys, monkeypatch, tmp_path):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in ("jax", "sbx") else find(name)
    )
    size = ["--dimensions", "3", "--points", "5", "--games", "256", *SHORT]
    arguments = [*size, "--subjects", "JAX", "SBX", "--json", str(tmp_path / "results.json")]
    assert run.main(["--rates", "environment", "training", *arguments]) == 0
    absent = [line for line in capsys.readouterr().out.splitlines() if "not measured" in line]
    expected = [("JAX step", "jax"), ("JAX rollout", "jax"), ("SBX DQN on resgym", "sbx-rl")]
    for line, (subject, package) in zip(absent, expected, strict=True):
        assert line.split("not measured")[0].strip() == subject
        assert line.endswith(f"is not installed (pip install {package})")


def test_subjects_are_closed_after_an_error():
    there, broken = Clock([0.0]), Mock(side_effect=RuntimeError("out of memory"))
    with pytest.raises(RuntimeError, match="out of memory"):
        measure.side_by_side([("a", lambda: there), ("b", broken)], 1, 1e-6, lambda _: None)
    assert there.closed


def test_every_environment_makes_the_moves_that_are_counted():
    threads = torch.get_num_threads()
    makers = dict(environment.makers(3, 6, 1, "cpu", (threads,)))
    names = {name.partition(",")[0] for name in makers}
    assert names >= {"resgym torch", "gymnasium.make", "SyncVectorEnv", "SB3 DummyVecEnv"}
    for name, make in makers.items():
        subject = make()
        subject.env.step = Mock(wraps=subject.env.step)
        subject.steps(7)
        assert subject.env.step.call_count == 7, name
        subject.close()


def test_sync_vector_env_resets_within_its_steps():
    """Otherwise some of its steps would be resets, and no moves."""
    makers = dict(environment.makers(3, 6, 2, "cpu", (1,)))
    subject = makers["SyncVectorEnv, 1"]()
    assert "same" in str(subject.env.metadata["autoreset_mode"]).lower()
    subject.close()


def test_learning_makes_an_update_per_parallel_step():
    options = environment.sizes(3, 6)
    models = [
        training.ddqn(4, "cpu", options),
        training.stock_dqn(4, options),
        training.stock_dqn(4, options, batched=True),
        training.plain_dqn(4, options),
    ]
    if importlib.util.find_spec("sbx"):
        models.append(training.sbx_dqn(4, options))
    for model in models:
        subject = training.Learning(model, "cpu", torch.get_num_threads())
        subject.steps(5)
        before = model.num_timesteps, model._n_updates
        subject.steps(6)
        assert (model.num_timesteps, model._n_updates) == (before[0] + 6 * 4, before[1] + 6)
        assert model.exploration_rate == training.EXPLORATION
        subject.close()


def test_the_plain_loop_stores_what_moves_led_to():
    loop = training.plain_dqn(8, environment.sizes(3, 6))
    for _ in range(20):
        loop.collect()
    ended = loop.terminated[:20].bool()
    alive = (loop.next_states[:20, :, :, 0] >= 0).sum(2)
    assert ended.any()
    assert ((alive == 1) == ended).all()
    assert (loop.rewards[:20] == ended).all()  # the host's only reward is that of the last move
    going_on = ~ended[:-1]
    assert torch.equal(loop.next_states[:19][going_on], loop.states[1:20][going_on])
    loop.env.close()


def test_a_policy_is_asked_for_every_move():
    subject = training.WithPolicy(4, "cpu", torch.get_num_threads(), environment.sizes(3, 6))
    called = Mock(return_value=None)
    subject.model.q_net.register_forward_hook(called)
    subject.steps(5)
    assert called.call_count == 5
    subject.close()


def test_training_says_what_is_neither_environment_nor_updates():
    maker = dict(training.training_makers(3, 5, 64, "cpu", (1,)))["DDQN torch, 1"]
    subject = maker()
    assert subject.figures == {}
    subject.steps(6)
    for _ in range(3):
        subject.steps(2)
    ((_, six), (_, two)) = subject.shares.items()
    assert (len(six), len(two)) == (1, 3)
    assert 0 < min(two) <= subject.figures["collection_share"] == sorted(two)[1] <= max(two) < 1
    subject.close()


def small(*more):
    return ["--dimensions", "3", "--points", "5", "--games", "2", *SHORT, *more]


def test_a_run_a_second_one_and_the_page(tmp_path, capsys):
    file = tmp_path / "results.json"
    first = small("--rates", "environment", "--subjects", "torch", "sync", "--json", str(file))
    assert run.main(first) == 0
    assert "resgym torch" in capsys.readouterr().out
    content = results.read(file)
    (case,) = [each for each in content["cases"] if each["subject"] == "resgym torch"]
    assert 0 < case["min"] <= case["median"] <= case["max"]
    assert len(case["repeats"]) == 2
    assert (case["dimension"], case["points"], case["games"], case["threads"]) == (3, 5, 2, 1)
    assert 1 <= case["alive_points"] <= 5
    assert {"cores", "processor"} <= content["machine"].keys()
    assert {"numpy", "python", "torch"} <= content["versions"].keys()
    assert content["sittings"][0]["seconds"] >= 0
    # A second run adds other cases and replaces equal ones.
    more = small("--rates", "environment", "training", "--subjects", "torch", "--json", str(file))
    assert run.main(more) == 0
    both = results.read(file)
    assert len(both["sittings"]) == 2
    subjects = sorted(f"{each['rate']} {each['subject']}" for each in both["cases"])
    expected = ["environment SyncVectorEnv", "environment resgym torch", "training DDQN torch"]
    assert subjects == expected
    new = next(each for each in both["cases"] if each["subject"] == "resgym torch")
    assert new["repeats"] != case["repeats"]
    # What is printed is on the page, and the page is then up to date.
    page, picture = tmp_path / "page.md", tmp_path / "picture.svg"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    shown = [str(file), "--page", str(page), "--picture", str(picture)]
    assert report.main([*shown, "--check"]) == 1
    assert not picture.exists()
    assert report.main(shown) == 0
    assert picture.stat().st_size > 1_000
    text = page.read_text()
    assert re.fullmatch("before\n<.*>\nafter\n", text, flags=re.DOTALL)
    assert "old" not in text
    assert results.machine()["processor"] in text
    assert report.short(new["median"]) in text
    assert report.main([*shown, "--check"]) == 0


def test_nothing_is_written_of_repeats_far_apart(tmp_path, capsys, monkeypatch):
    file = tmp_path / "results.json"
    found = [{"subject": name, "device": "cpu", "threads": 1} for name in "abc"]
    rates = ([90.0, 100.0, 110.0], [50.0, 100.0, 150.0], [60.0, 100.0, 101.0])
    cases = [results.case(about, each) for about, each in zip(found, rates, strict=True)]
    assert run.noise(cases) == pytest.approx(0.41)
    monkeypatch.setattr(run, "measure", lambda *_: (cases, {}))
    size = ["--rates", "environment", "--dimensions", "3", "--points", "5", "--games", "2"]
    arguments = [*size, "--devices", "cpu", "--json", str(file)]
    assert run.main([*arguments, "--noise", "0.4"]) == 1
    printed = capsys.readouterr()
    assert "not written: repeats lie 41 % apart" in printed.out
    assert "1 of 1 sizes not written: the machine is too noisy" in printed.err
    assert not file.exists()


def test_results_of_another_commit_are_not_mixed_in(tmp_path, capsys):
    file = tmp_path / "results.json"
    arguments = small("--rates", "environment", "--subjects", "torch", "--json", str(file))
    assert run.main(arguments) == 0
    content = json.loads(file.read_text())
    for name, other in (("commit", "0" * 40), ("machine", {"cores": 96}), ("settings", {})):
        file.write_text(json.dumps({**content, name: other}))
        before = file.read_bytes()
        capsys.readouterr()
        assert run.main(arguments) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert f"was measured with {name}" in line
        assert file.read_bytes() == before


def test_an_interrupted_run_keeps_what_it_has(tmp_path):
    file = tmp_path / "results.json"
    arguments = ["--rates", "environment", "--subjects", "torch", "--json", str(file)]
    # Long enough for every size that the signal finds one of them at work.
    longer = ["--games", "2", "3", "4", "--repeats", "100", "--seconds", "0.01"]
    command = [sys.executable, "-m", "benchmarks.run", *small(*arguments), *longer]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    try:
        limit = time.monotonic() + 60
        while not file.exists() and process.poll() is None and time.monotonic() < limit:
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "stopped: " in errors
    # A wrapper of Gymnasium's that the signal finds half made is ignored, with a notice at the end.
    assert "Traceback" not in errors.partition("Exception ignored in")[0]
    assert results.read(file)["cases"]


@pytest.mark.parametrize(
    ("option", "given"),
    [
        *(("--games", "0"), ("--games", "many"), ("--dimensions", "11"), ("--points", "1")),
        *(("--seconds", "0"), ("--seconds", "nan"), ("--repeats", "-1"), ("--threads", "0")),
        *(("--noise", "-0.1"), ("--noise", "much")),
        *(("--rates", "everything"), ("--devices", "abacus"), ("--subjects", "abacus")),
        ("--json", "."),
    ],
)
def test_bad_arguments(option, given, capsys):
    try:
        code = run.main([option, given])
    except SystemExit as stop:
        code = stop.code
    assert code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert ("results" if option == "--json" else option) in line
    assert (given if option in ("--json", "--subjects") else f"'{given}'") in line


@pytest.mark.parametrize(
    ("text", "message"),
    [(None, "cannot be read"), ("{", "no JSON"), ("{}", "schema 1"), ('{"schema": 1}', "lacks")],
)
def test_bad_results(text, message, tmp_path, capsys):
    file = tmp_path / "results.json"
    if text is not None:
        file.write_text(text)
    assert report.main([str(file), "--print"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


def test_a_list_measures_nothing(capsys):
    assert run.main(["--list", "--devices", "cpu"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any("d = 10, P = 50, 65,536 games" in line for line in lines)
    assert any(line.startswith("training") and "SB3 DQN" in line for line in lines)


def test_three_digits():
    shown = {0.5: "0.5", 7.0: "7.00", 999.4: "999", 1_234.0: "1.23 k", 99_960.0: "100 k"}
    shown |= {999_700.0: "1.00 M", 45_600_000.0: "45.6 M", 3.2e9: "3.20 G"}
    assert {rate: report.short(rate) for rate in shown} == shown


def test_the_ratio_is_to_the_fastest_peer_and_only_with_the_hardest_one():
    def table(rate, **medians):
        size = {"rate": rate, "dimension": 3, "points": 5, "games": 256, "device": "cpu"}
        cases = [
            results.case({**size, "subject": name, "threads": 1}, [median])
            for name, median in medians.items()
        ]
        return report.table({"cases": cases}, rate)

    found = {"resgym numba": 90.0, "resgym torch": 10.0, "SyncVectorEnv": 2.0}
    assert "fastest peer" not in "".join(table("environment", **found))
    lines = table("environment", **found, **{"JAX rollout": 100.0, "JAX step": 45.0})
    assert lines[2].endswith("| best / resgym torch | own / fastest peer |")
    assert lines[4].endswith("| 10.0 | 0.9 |")  # a peer may win, and it shows
    found = {"DDQN numba": 80.0, "DDQN torch": 40.0, "SB3 DQN, DummyVecEnv": 4.0}
    lines = table("training", **found, **{"plain DQN on resgym": 32.0, "SBX DQN on resgym": 8.0})
    assert lines[4].endswith("| 20.0 | 2.5 |")


def test_the_page_shows_the_results_that_are_kept():
    kept = ROOT / "docs" / "benchmarks.json"
    if not kept.exists():
        pytest.skip("no results are kept")
    assert report.main([str(kept), "--check"]) == 0
