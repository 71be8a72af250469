"""The command line: results as text and JSON, errors in one line with exit code 2."""

import io
import json
import os
import re
import subprocess
import sys

import pytest

import resgym
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
    (["solve", "E8", "--time-limit", "-1"], "time_limit", "got -1"),
    (["play", "E8", "--opponent", "nobody"], "nobody", "zeillinger"),
    (["play", "E8", "--starts", "none"], "starts must not be given", "got none"),
    (["scoreboard", "add"], "action must be 'add MODEL' or 'check FILE'", "got 'add'"),
    (["scoreboard", "ad", "zeillinger"], "action must be 'add MODEL'", "got 'ad"),
    (["scoreboard", "--task", "worst20"], "task must be one of", "did you mean 'worst-20'?"),
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


def test_tree_as_text_and_json(capsys):
    tree = resgym.resolution_tree("D4", "zeillinger")
    code, out, err = run(capsys, "tree", "D4")
    assert (code, err, tree.to_text() in out) == (0, "", True)
    assert out.startswith("host zeillinger: x² + y²z + z³\n8 moves deep, 31 charts, 16 leaves\n")
    code, out, _ = run(capsys, "tree", "D4", "--json")
    assert (code, json.loads(out)) == (0, json.loads(tree.to_json()))


@pytest.mark.parametrize(
    ("suffix", "begins"),
    [
        *(("svg", "<svg"), ("html", "<!doctype html"), ("dot", "digraph"), ("json", "{")),
        *(("txt", ""), ("tex", "\\begin{forest}"), ("sage", "# host all")),
        *(("sing", "// host"), ("m2", "-- host"), ("jl", "# host"), ("pl", "# host")),
    ],
)
def test_tree_files(capsys, tmp_path, suffix, begins):
    path = tmp_path / f"tree.{suffix}"
    said = run(capsys, "tree", "A3", "--host", "all_coord", "--out", str(path))
    assert said == (0, f"2 moves deep, 7 charts, 5 leaves\nwritten to {path}\n", "")
    assert path.read_text().startswith(begins)
    assert os.listdir(tmp_path) == [path.name]


def test_a_written_tree_leaves_the_data_alone(capsys, tmp_path):
    path = tmp_path / "tree.tex"
    code, out, err = run(capsys, "solve", "A3", "--out", str(path), "--json")
    assert (code, json.loads(out)["value"]) == (0, 2)
    assert re.fullmatch(f".*\nwritten to {path}\n", err)


@pytest.mark.parametrize("command", ["tree", "solve"])
def test_other_hosts_are_compared_and_pictures_written(capsys, tmp_path, command):
    options = ["D4", "--compare", "zeillinger", "all_coord"]
    out = run(capsys, command, *options)[1]
    path = tmp_path / "tree.svg"
    tree = resgym.solve("D4").tree if command == "solve" else resgym.resolution_tree("D4")
    assert tree.compare("zeillinger", "all_coord").to_text() in out
    assert "≠ all_coord {x, y, z}" in out
    out = run(capsys, command, *options, "--json")[1]
    if command == "tree":
        assert json.loads(out)["charts"][0]["others"]["all_coord"] == [0, 1, 2]
    assert run(capsys, command, "D4", "--out", str(path))[0] == 0
    assert path.read_text() == tree.to_svg()
    code, _, err = run(capsys, command, "D4", "--compare", "zeilinger")
    assert (code, err.count("\n")) == (2, 1)
    assert "did you mean 'zeillinger'" in err


@pytest.mark.parametrize(
    ("arguments", "least", "most"),
    [
        (["E8"], 7, 7),
        (["x^2+y^3+z^5", "--objective", "nodes"], 54, 54),
        (["E6", "--host", "zeillinger"], 10, 10),
        (["E6", "--agent", "choose_first"], 1, 6),
        (["E8", "--max-depth", "3"], 4, 7),
    ],
)
def test_solve_says_what_is_proved(capsys, arguments, least, most):
    code, out, _ = run(capsys, "solve", *arguments, "--json")
    result, proved = json.loads(out), "--max-depth" not in arguments
    assert (code, result["proved"]) == (0, proved)
    assert least <= result["lower_bound"] <= most
    assert result["value"] == (result["lower_bound"] if proved else None)
    said = f"{result['objective']} {result['value']} (proved;" if proved else "depth: at least "
    assert run(capsys, "solve", *arguments)[1].startswith(said)


@pytest.mark.parametrize(
    ("command", "option"),
    [("tree A2", "--out"), ("solve A2", "--out"), ("play A2", "--out"), ("cross-play", "--plot")],
)
def test_a_file_that_cannot_be_written_is_refused_before_the_work(
    capsys, tmp_path, monkeypatch, command, option
):
    for work in ("polynomials.parse.parse", "measure.rho.rho"):
        monkeypatch.setattr(f"resgym.{work}", lambda *_, **__: pytest.fail("began to work"))
    ending = {"play A2": "gif", "cross-play": "png"}.get(command, "svg")
    (tmp_path / f"folder.{ending}").mkdir()
    for name, message in [
        ("file.bmp", "must end in one of"),
        (f"nowhere/file.{ending}", "must be in a folder that exists"),
        (f"folder.{ending}", "must be a file"),
        (f"{'x' * 300}.{ending}", "File name too long"),
        (f"file.{ending}", "must be in a folder that is writable"),
    ]:
        if "writable" in message:
            # Even of a folder that root may write to, like one of a file system without writing.
            monkeypatch.setattr(os, "access", lambda path, mode: False)
        code, _, err = run(capsys, *command.split(), option, str(tmp_path / name))
        assert (code, err.count("\n")) == (2, 1)
        assert message in err


@pytest.mark.parametrize("extra", [[], ["--json"], ["--out", "tree.svg"]])
def test_an_interrupted_solver_says_what_it_has_proved(capsys, tmp_path, monkeypatch, extra):
    monkeypatch.chdir(tmp_path)
    reports = []

    def interrupt(self, positions):
        # Ctrl-C after a few stretches of the search.
        reports.append(positions)
        if len(reports) == 4:
            raise KeyboardInterrupt
        return None

    monkeypatch.setattr("resgym.solver.search.Limits.reached", interrupt)
    hard = "random(points=12,max=60,dim=4)"
    code, out, err = run(capsys, "solve", hard, *extra)
    assert (code, err) == (130, "")
    if extra == ["--json"]:
        result = json.loads(out)
        found = result["value"], result["proved"], result["stopped_by"]
        assert found == (None, False, "interrupt")
        assert result["lower_bound"] >= 2
    else:
        assert re.fullmatch(r"depth: at least \d+ moves \(stopped by interrupt; .*\)\n", out)
        assert "at least 0 " not in out
    assert os.listdir(tmp_path) == []


def test_a_reader_that_leaves_is_no_error():
    command = f"{sys.executable} -m resgym tree E8 | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("host zeillinger: ")
