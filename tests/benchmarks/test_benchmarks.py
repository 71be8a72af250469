"""The benchmark programs: what they measure, keep, refuse and show. No figure is judged here."""

import importlib.util
import json
import re
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch

from benchmarks import compare, environment, measure, oracle, report, results, run, training, trees
from tests.resgym.commands import run as command
from tests.resgym.tables import rows

ROOT = Path(__file__).resolve().parents[2]
SHORT = ["--repeats", "2", "--seconds", "0.001", "--threads", "1", "--devices", "cpu"]
SHORT += ["--noise", "1000"]  # of so short ones nothing is expected


class Clock:
    """A subject whose every parallel step takes a second of a clock that the test owns."""

    games, device, threads, figures = 10, "cpu", 1, {"played": 1.0}

    def __init__(self, clock, seconds=1.0, games=10):
        self.clock, self.seconds, self.games, self.closed = clock, seconds, games, False

    def steps(self, number):
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
    assert found["slow"].figures == {"played": 1.0}
    assert (absent, about["slow"]) == ({}, {"device": "cpu", "threads": 1})
    assert slow.closed
    assert quick.closed
    # They take turns: neither is measured twice in a row.
    repeats = [text.split(":")[0] for text in said if "repeat" in text]
    assert repeats == ["slow", "quick"] * 3


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


def small(*more):
    return ["--dimensions", "3", "--points", "5", "--games", "2", *SHORT, *more]


def test_a_run_a_second_one_and_the_page(tmp_path, capsys):
    file = tmp_path / "results.json"
    first = small("--rates", "environment", "--subjects", "torch", "sync", "--json", str(file))
    assert run.main([*first, "--noise", "1e-9"]) == 1
    assert "sizes not written: the machine is too noisy" in capsys.readouterr().err
    assert not file.exists()
    assert run.main(first) == 0
    assert "resgym torch" in capsys.readouterr().out
    content = results.read(file)
    (case,) = [each for each in content["cases"] if each["subject"] == "resgym torch"]
    assert 0 < case["min"] <= case["median"] <= case["max"]
    assert (case["dimension"], case["points"], case["games"], case["threads"]) == (3, 5, 2, 1)
    assert len(case["repeats"]) == 2
    # A second run adds other cases and replaces equal ones.
    more = small("--rates", "environment", "training", "--subjects", "torch", "--json", str(file))
    assert run.main(more) == 0
    both = results.read(file)
    subjects = sorted(f"{each['rate']} {each['subject']}" for each in both["cases"])
    expected = ["environment SyncVectorEnv", "environment resgym torch", "training DDQN torch"]
    assert subjects == expected
    new = next(each for each in both["cases"] if each["subject"] == "resgym torch")
    assert new["repeats"] != case["repeats"]
    # What is printed is on the page, and the page is then up to date.
    page = tmp_path / "page.md"
    picture = tmp_path / "picture.svg"
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
    # Results of another commit, machine or set of settings are not mixed in.
    for name, other in (("commit", "0" * 40), ("machine", {"cores": 96}), ("settings", {})):
        file.write_text(json.dumps({**both, name: other}))
        before = file.read_bytes()
        capsys.readouterr()
        assert run.main(first) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert f"was measured with {name}" in line
        assert file.read_bytes() == before


@pytest.mark.parametrize(("words", "said"), rows(__file__, "errors.txt"))
def test_bad_arguments(words, said, capsys):
    program, *arguments = words.split()
    main = {"run": run, "compare": compare}[program].main
    code, _, err = command(capsys, *arguments, main=main)
    assert (code, err.count("\n"), said in err) == (2, 1, True), err


def test_the_page_shows_the_results_that_are_kept():
    assert report.main([str(ROOT / "docs" / "benchmarks.json"), "--check"]) == 0


def test_the_page_of_results_shows_the_trees_of_hosts():
    hosts, text = ["any", "spivakovsky"], (ROOT / "docs" / "results.md").read_text()
    for row in trees.rows(hosts, 5.0, ["simple"]):
        assert f"| {' | '.join(row)} |" in text


def test_families_have_the_sizes_of_the_page():
    families = trees.families()
    axes = {name: {len(points[0]) for points in members} for name, members in families.items()}
    assert axes.pop("curves") == {2}
    assert (axes.pop("threefolds"), axes.pop("fourfolds")) == ({4}, {5})
    assert set.union(*axes.values()) == {3}


SINGULAR = """#!/bin/sh
echo 'Milnor number (-1: not isolated): 1
[1]:
   _[1]=1/2
[2]:
   1
topological zeta function at 0:
[1]:
   (s+3)/(2s2+5s+3)'
"""
"""Prints what is right of A1 in three variables."""


def test_the_oracle_fails_on_a_difference(tmp_path, monkeypatch, capsys):
    singular = tmp_path / "Singular"
    singular.write_text(SINGULAR)
    singular.chmod(0o755)
    monkeypatch.setattr(
        "sys.argv",
        ["oracle", "--singular", str(singular), "--number", "1", "--parts", "singularities"],
    )
    monkeypatch.setattr(oracle, "singularity_names", lambda kind: ["A1"] * (kind == "simple"))
    assert oracle.main() == 1
    said = capsys.readouterr().out
    assert said.startswith("DIFFERENT Milnor number of ")
    compared = "Milnor number 2, spectrum, d = 2 1, spectrum, d = 3 1, zetaDL 2"
    assert f"2 questions: {compared}; 3 differences" in said
