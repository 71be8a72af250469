"""The command line: results as text and JSON, errors in one line with exit code 2."""

import io
import json
import os
import re
import shlex
from functools import partial

import pytest

import resgym
from resgym.measure.rho import cross_play, rho
from tests.resgym.commands import run
from tests.resgym.tables import rows


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("rho random random --games 40", "RandomHost against RandomAgent: 0 of 40 games"),
        ("check resgym/HironakaHost-v0 --steps 9", "SAME_STEP: 9 steps"),
        ("bench --batch-sizes 1 --seconds 0.01", "1 games at once: 5 times 0.01 s"),
    ],
)
def test_who_waits_at_a_terminal_is_told(capsys, monkeypatch, words, told):
    assert run(capsys, *words.split())[2] == ""  # no terminal
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    code, out, err = run(capsys, *words.split())
    assert (code, told in err.splitlines()[0], told in out) == (0, True, False)


HOSTS = ("zeillinger", "all_coord")
# A command line, and the result that it shows.
RESULTS = {
    "rho zeillinger choose_first --games 40 --optimum": partial(
        rho, "zeillinger", "choose_first", games=40, optimum=True
    ),
    "cross-play --hosts zeillinger all_coord --agents random choose_last --games 9": partial(
        cross_play, HOSTS, ["random", "choose_last"], games=9
    ),
    "tree E8 --stop smooth": partial(resgym.resolution_tree, "E8", stop="smooth"),
    "tree D4 --compare zeillinger all_coord": lambda: resgym.resolution_tree("D4").compare(*HOSTS),
}


@pytest.mark.parametrize("words", RESULTS)
def test_a_result_is_shown_as_text_and_as_json(capsys, words):
    result = RESULTS[words]()
    text = result.to_text() if words.startswith("tree") else str(result)
    assert run(capsys, *words.split()) == (0, f"{text}\n", "")
    code, out, err = run(capsys, *words.split(), "--json")
    assert (code, err, json.loads(out)) == (0, "", json.loads(json.dumps(result.to_dict())))


def test_it_says_that_there_is_no_tree(capsys):
    words = "solve D4 --host all_coord --out t.svg"
    code, _, err = run(capsys, *words.split())
    assert (code, "no tree of" in err) == (2, True)


def test_check(capsys):
    id = "resgym/HironakaHost-v0"
    modes = ("SAME_STEP", "NEXT_STEP", "DISABLED")
    code, out, _ = run(capsys, "check", id, "--steps", "40")
    assert (code, out.splitlines()) == (0, [f"{id} {mode}: ok" for mode in modes])
    # Three steps end no episode in all of the modes: that is a failure, not bad input.
    code, out, _ = run(capsys, "check", id, "--steps", "1", "--json")
    assert (code, json.loads(out)["ok"]) == (1, False)
    assert "no episode ended" in json.loads(out)["failures"]["DISABLED"]


def test_bench(capsys):
    arguments = ["--batch-sizes", "1", "8", "--repeats", "1", "--seconds", "0.01", "--json"]
    code, out, _ = run(capsys, "bench", *arguments)
    rates = json.loads(out)["moves_per_second"]
    assert (code, list(rates)) == (0, ["1", "8"])
    assert all(rate["median"] > 0 for rate in rates.values())


@pytest.mark.parametrize(("words", "said"), rows(__file__, "errors.txt"))
def test_errors_are_one_line_with_code_two(capsys, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    code, out, err = run(capsys, *shlex.split(words))
    assert (code, out) == (2, "")
    assert re.fullmatch("resgym.*\n", err)
    assert all(part in err for part in said.split(" … "))
    assert not list(tmp_path.iterdir())


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


def test_the_tree_of_a_solution_is_compared_and_written(capsys, tmp_path):
    path, tree = tmp_path / "tree.svg", resgym.solve("D4").tree.compare(*HOSTS)
    assert tree.to_text() in run(capsys, "solve", "D4", "--compare", *HOSTS)[1]
    code, out, err = run(capsys, "solve", "D4", "--compare", *HOSTS, "--out", str(path), "--json")
    assert (code, json.loads(out)["value"]) == (0, 4)  # the data alone
    assert re.fullmatch(f".*\nwritten to {path}\n", err)
    assert path.read_text() == tree.to_svg()


@pytest.mark.parametrize(
    ("arguments", "least", "most"),
    [
        (["E8"], 7, 7),
        (["x^2+y^3+z^5", "--objective", "nodes"], 54, 54),
        (["E6", "--host", "zeillinger"], 10, 10),
        (["E6", "--agent", "choose_first"], 1, 6),
        (["E8", "--max-depth", "3"], 4, 7),
        (["E8", "--stop", "smooth", "--centres", "equimultiple"], 6, 6),
    ],
)
def test_solve_says_what_is_proved(capsys, arguments, least, most):
    code, out, _ = run(capsys, "solve", *arguments, "--json")
    result = json.loads(out)
    proved = "--max-depth" not in arguments
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
