"""The command line: results as text and JSON, errors in one line with exit code 2."""

import io
import json
import re

import pytest

from resgym.measure.rho import cross_play, rho
from tests.resgym.commands import run

SMALL = ["--games", "40"]


def test_rho_as_json(capsys):
    code, out, err = run(capsys, "rho", "zeillinger", "choose_first", *SMALL, "--json")
    expected = rho("zeillinger", "choose_first", games=40).to_dict()
    assert (code, err, json.loads(out)) == (0, "", json.loads(json.dumps(expected)))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["rho", "random", "random", *SMALL], "RandomHost against RandomAgent: 0 of 40 games"),
        (["check", "resgym/HironakaHost-v0", "--steps", "9"], "SAME_STEP: 9 steps"),
        (["bench", "--batch-sizes", "1", "--seconds", "0.01"], "1 games at once: 5 times 0.01 s"),
    ],
)
def test_who_waits_at_a_terminal_is_told(capsys, monkeypatch, words, told):
    assert run(capsys, *words)[2] == ""  # no terminal
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    code, out, err = run(capsys, *words)
    assert (code, told in err.splitlines()[0], told in out) == (0, True, False)


def test_cross_play(capsys):
    names = ["--hosts", "random", "zeillinger", "--agents", "choose_last"]
    expected = cross_play(["random", "zeillinger"], ["choose_last"], games=40)
    code, out, _ = run(capsys, "cross-play", *names, *SMALL, "--json")
    assert (code, json.loads(out)) == (0, json.loads(json.dumps(expected.to_dict())))
    assert run(capsys, "cross-play", *names, *SMALL)[:2] == (0, f"{expected}\n")


def test_check(capsys):
    id, modes = "resgym/HironakaHost-v0", ("SAME_STEP", "NEXT_STEP", "DISABLED")
    code, out, _ = run(capsys, "check", id, "--steps", "40")
    assert (code, out.splitlines()) == (0, [f"{id} {mode}: ok" for mode in modes])
    code, out, _ = run(capsys, "check", "resgym/HironakaAgent-v0", "--steps", "40", "--json")
    assert (code, json.loads(out)["ok"]) == (0, True)
    # Three steps end no episode in all of the modes: that is a failure, not bad input.
    code, out, _ = run(capsys, "check", id, "--steps", "1", "--json")
    assert code == 1
    assert "no episode ended" in json.loads(out)["failures"]["DISABLED"]


def test_bench(capsys):
    arguments = ["--batch-sizes", "1", "8", "--repeats", "1", "--seconds", "0.01", "--json"]
    code, out, _ = run(capsys, "bench", *arguments)
    rates = json.loads(out)["moves_per_second"]
    assert (code, list(rates)) == (0, ["1", "8"])
    assert all(rate["median"] > 0 for rate in rates.values())


RHO = ["rho", "random", "random"]
BAD = [
    (["rho", "nobody", "random"], "resgym rho: host must be one of [", "got 'nobody'"),
    (["rho", "./no/host.zip", "random"], "resgym rho: host: there is no", "no/host.zip"),
    ([], "command", "required"),
    (["fly"], "'fly'", "rho"),
    ([*RHO, "--games", "0"], "games", "got 0"),
    ([*RHO, "--games", "1.5"], "games", "'1.5'"),
    ([*RHO, "--device", "cuda:55"], "device", "'cuda:55'"),
    ([*RHO, "--co\nlor", "red"], "unrecognized arguments: --co lor", "resgym rho --help"),
    ([*RHO, "--unit", "3"], "unit", "must be 1 with rule 'basic', got 3"),
    ([*RHO, "--starts", ""], "starts: cannot be read", "No such file"),
    (["rho", "zeillinger", "random", "--rule", "polyhedra"], "'zeillinger'", "'polyhedra'"),
    (["cross-play", "--hosts", "random", "nobody"], "cross-play: hosts must be", "zeillinger"),
    (["check", "no_such_module:Nothing-v0"], "id: got 'no_such_module:", "expected a registered"),
    (["check", "resgym/HironakaHost-v0", "--steps", "0"], "steps", "got 0"),
    (["check", "CartPole-v1"], "id: got 'CartPole-v1'; expected", "takes autoreset_mode"),
    (["bench", "--batch-sizes", "0"], "batch_sizes", "got 0"),
    (["tree", "E6", "--host", "nobody"], "resgym tree: host must be", "zeillinger"),
    (["solve", "5"], "solve", "constant"),
    (["solve", "E8", "--time-limit", "-1"], "time_limit", "got -1"),
    (["play", "E8", "--opponent", "nobody"], "nobody", "zeillinger"),
    (["scoreboard", "add"], "action must be 'add MODEL' or 'check FILE'", "got 'add'"),
    (["scoreboard", "ad", "zeillinger"], "action must be 'add MODEL'", "got 'ad"),
    (["scoreboard", "check", "none.json"], "none.json", "No such file or directory: 'none.json'"),
    (["scoreboard", "--file", "a.txt"], "file", "must end in one of .json"),
    (["serve", "--port", "70000"], "--port", "70000"),
    (["serve", "--models", "none"], "--models", "none"),
    (["serve", "--host", ""], "--host", ""),
    (["serve", "--workers", "0"], "--workers", "0"),
    (["play", "x^2+y^3+z^5+w^2", "--out", "g.gif"], "out", "must end in .json"),
]


@pytest.mark.parametrize(("arguments", "field", "detail"), BAD, ids=[" ".join(b[0]) for b in BAD])
def test_errors_are_one_line_with_code_two(capsys, tmp_path, monkeypatch, arguments, field, detail):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert re.fullmatch("resgym.*\n", err)
    assert field in err
    assert detail in err
    assert not list(tmp_path.iterdir())


def test_the_share_of_the_optimum(capsys):
    game = ["--games", "20", "--max-num-points", "4", "--optimum"]
    assert run(capsys, "rho", "zeillinger", "choose_first", *game)[1].endswith(" of the optimum\n")
    assert "of the optimum" not in run(capsys, "rho", "zeillinger", "random", *game)[1]
    table = json.loads(run(capsys, "cross-play", *game, "--json")[1])["zeillinger"]
    assert 0 < table["choose_last"]["share"][0] <= 1
