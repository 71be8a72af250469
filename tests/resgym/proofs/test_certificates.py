"""Certificates prove what the solver found, to two checkers; nothing false is ever accepted."""

import json
import math
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

import resgym
from resgym import certificate_check
from resgym.certificate_check import check
from resgym.proofs.certificate import read_certificate
from tests.reference import certificates as reference
from tests.resgym.commands import run
from tests.resgym.solver.positions import drawn
from tests.resgym.tables import rows

CHECKER = Path(certificate_check.__file__)
E6 = resgym.solve("E6").certificate().splitlines()


def proves(lines):
    """What lines prove, or None."""
    try:
        return check(lines).says
    except (ValueError, RecursionError):
        return None


NAMES = ["A1", "A4", "D5", "E6", "U12", "x^2+y^3", "x^2*y+y^4", "w^2+x^2+y^3+z^3"]


@pytest.mark.parametrize("objective", ["depth", "nodes", "leaves"])
def test_two_checkers_accept_the_proved_value(objective):
    for position in (*NAMES, *drawn(2, 5, 3, 6, 6), *drawn(2, 5, 4, 4, 3)):
        solution = resgym.solve(position, objective)
        text = solution.certificate()
        assert check(text.splitlines()).says == (objective, solution.value, solution.value)
        assert reference.proved(text) == (objective, solution.value, solution.value)


def mutated(lines, draw):
    """A certificate with one number changed, or a line left out, repeated or moved."""
    lines = list(lines)
    index = draw.randrange(len(lines))
    kind = draw.randrange(8)
    if kind == 0:
        del lines[index]
    elif kind == 1:
        lines.insert(draw.randrange(len(lines)), lines.pop(index))
    else:
        numbers = list(re.finditer("[0-9]+", lines[index]))
        place = draw.choice(numbers)
        change = int(place[0]) + draw.choice([-2, -1, 1, 2, 5])
        lines[index] = lines[index][: place.start()] + str(change) + lines[index][place.end() :]
    return lines


@pytest.mark.parametrize("number", [20, pytest.param(1_700, marks=pytest.mark.long)])
@pytest.mark.parametrize("objective", ["depth", "nodes"])
def test_no_mutation_proves_something_false(objective, number):
    draw = random.Random(0)
    for name in ["A4", "E6", "D5", "U12", "x^2*y+y^3*z+z^4", "w^2+x^2+y^3+z^3"]:
        lines = resgym.solve(name, objective).certificate().splitlines()
        refused = 0
        for _ in range(number):
            changed = mutated(lines, draw)
            found = proves(changed)
            refused += found is None
            if found is not None:
                # The start may be another position with another value.
                value = resgym.solve(json.loads(changed[0])["start"], objective).value
                assert found[1] <= value <= found[2], changed
        assert refused > 0


START = '{"start":[[2,0,0],[0,3,0],[0,0,4]],"objective":"depth","least":1}'
LONG = "1" * 1_000_000
REFUSED = re.compile(r"^(line \d+ (is not proved|has a fault)|the lines do not|.* is longer than)")
HOSTILE = {
    **{name: text.splitlines() for name, text in rows(__file__, "hostile.txt")},
    "no line": [""],
    "nothing": [],
    "a million digits": [START.replace("[2,0,0]", f"[2,{LONG},0]")],
    "deep": ["[" * 100_000],
    "backwards": [E6[0], *reversed(E6[1:])],
    "a circle": [E6[0], E6[-1], *E6[1:-1]],
    "a start within": [*E6, E6[0]],
}


@pytest.mark.parametrize("lines", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_files_are_refused(lines):
    assert check([START]).says == ("depth", 1, math.inf)  # the control
    with pytest.raises(ValueError, match=REFUSED) as refused:
        check(lines)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("limit", [1, 20])
@pytest.mark.parametrize("objective", ["depth", "nodes"])
def test_a_stopped_search_certifies_its_bounds(objective, limit):
    solution = resgym.solve(drawn(1, 3, 3, 20, 20)[0], objective, max_positions=limit)
    assert not solution.proved
    text = solution.certificate()
    said = check(text.splitlines()).says
    assert solution.lower_bound == said[1] <= said[2] < float("inf")
    assert reference.proved(text) == said


def test_commands_write_and_read(capsys, tmp_path):
    path = tmp_path / "e6.jsonl"
    picture = tmp_path / "e6.svg"
    code, _, err = run(capsys, "solve", "E6", "--certificate", str(path))
    assert (code, err) == (0, f"certificate written to {path}\n")
    assert path.read_text().splitlines() == E6
    code, out, _ = run(capsys, "certificate", str(path), "--out", str(picture))
    assert (code, picture.exists()) == (0, True)
    assert out.startswith(f"{path} is valid: depth 6 (proved; 22 positions, ")
    page = tmp_path / "e6.html"
    assert run(capsys, "certificate", str(path), "--out", str(page))[0] == 0
    assert '<a href="e6.jsonl">certificate</a>' in page.read_text(encoding="utf-8")
    tree = read_certificate(path).tree
    assert tree.depth == 6
    path.write_text("\n".join(E6[:-1]))
    said = "resgym certificate: the lines do not prove the first one\n"
    assert run(capsys, "certificate", str(path)) == (2, "", said)


def run_alone(folder, path, limit="unlimited"):
    """A copy of the checker outside the package, which may have little memory."""
    checker = folder / "certificate_check.py"
    checker.write_bytes(CHECKER.read_bytes())
    command = f'ulimit -v {limit}; exec "{sys.executable}" -I "{checker}" "{path}"'
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)


def test_the_checker_runs_alone(tmp_path):
    path = tmp_path / "e6.jsonl"
    assert len(CHECKER.read_text().splitlines()) <= 100
    for text, code, printed in (
        ("\n".join(E6), 0, "proved: depth at least 6, at most 6\n"),
        ("\n".join(E6[:-1]), 1, "refused: the lines do not prove the first one\n"),
        ("\xff", 1, "refused: "),
    ):
        path.write_text(text, encoding="latin-1")
        done = run_alone(tmp_path, path)
        said = done.stdout + done.stderr
        assert (done.returncode, said.count("\n")) == (code, 1)
        assert said.startswith(printed)


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "large", "missing", "one line"])
def test_what_never_ends_is_refused_at_once(kind, capsys, tmp_path):
    """By the command and by a copy of the checker."""
    path = tmp_path / "e6.jsonl"
    make = {
        "pipe": lambda: os.mkfifo(path),
        "folder": path.mkdir,
        "device": lambda: path.symlink_to("/dev/zero"),
        "large": lambda: os.truncate(os.open(path, os.O_CREAT | os.O_WRONLY), 2**27 + 1),
        "missing": lambda: None,
        "one line": lambda: path.write_text(START[:-1] + "0" * 2**24),
    }
    make[kind]()
    code, out, err = run(capsys, "certificate", str(path))
    assert (code, out, err.count("\n")) == (2, "", 1)
    done = run_alone(tmp_path, path, limit=200_000)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("refused: ")


def test_only_so_many_lines_are_read(monkeypatch):
    def late(lines, first):
        return enumerate(lines, first + 999_999)

    monkeypatch.setattr(certificate_check, "enumerate", late, raising=False)
    with pytest.raises(ValueError, match=r"^line 1000001 has a fault$"):
        check(E6)
