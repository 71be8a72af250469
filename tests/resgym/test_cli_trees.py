"""The commands `tree` and `solve`."""

import json
import os
import re
import subprocess
import sys

import pytest

import resgym
from tests.resgym.commands import run


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
