"""The game in the terminal, with typed answers."""

import io
import json

import pytest

from resgym.app.play import hint, play, random_position
from resgym.solver.solve import solve
from tests.reference.rule import move
from tests.resgym import commands

E8 = "x^2+y^3+z^5"
HUGE = {"points": [(2**59, 1), (0, 2**59)], "seat": "host", "opponent": "choose_first"}


def run(answers, points=E8, seat="agent", **kwargs):
    target = io.StringIO()
    record = play(points, seat, source=io.StringIO(answers), target=target, **kwargs)
    return record, target.getvalue()


def test_an_agent_plays_to_the_end():
    record, shown = run("x\n" * 50, opponent="zeillinger")
    assert record.finished
    for number, (axes, axis) in enumerate(zip(record.axes, record.axis, strict=True)):
        before, after = record.positions[number : number + 2]
        assert axis in axes
        assert sorted(after) == sorted(move(before, axes, axis))
    assert "one monomial is left: the game is over" in shown
    assert shown.count("choose: ") == len(record.axis)


@pytest.mark.parametrize("answers", ["x y\n", "xy\n", "{x, y}\n", "y x\n", "0\n", " x,y \n"])
def test_a_host_may_name_a_set_in_many_ways(answers):
    record, _ = run(answers, seat="host", opponent="choose_last")
    assert (record.axes, record.axis) == ([(0, 1)], [1])


@pytest.mark.parametrize(
    ("seat", "answer"),
    [("host", "x"), ("host", "4"), ("host", "9" * 5000), ("host", "x q"), ("host", ""),
     ("host", "²"), ("agent", "z"), ("agent", "3"), ("agent", "xy"), ("agent", "-1")],
)  # fmt: skip
def test_bad_answers_get_one_line_and_are_asked_again(seat, answer):
    record, shown = run(f"{answer}\n1\n", seat=seat)
    assert len(record.axis) == 1
    (line,) = [line for line in shown.splitlines() if line.startswith("choose one of")]
    assert line.endswith(f"got {answer.strip()[:40]!r}")


def test_undo_takes_whole_moves_back():
    record, shown = run("y\ny\nu\nundo\nu\ny\n")
    assert "there is no move to take back" in shown
    assert shown.count("a move is taken back") == 2
    assert record == run("y\n")[0]


@pytest.mark.parametrize(
    ("answers", "arguments", "moves", "shown"),
    [
        ("x\n", {}, 1, "stopped: end of input\n"),
        ("x\nq\nx\n", {}, 1, "\nafter 1 move:\nx^2 + z^5\nstopped\n"),
        ("y\n" * 9, {"max_moves": 2}, 2, "cut after 2 moves\n"),
        ("0\n", HUGE, 0, "stopped: an exponent would pass 2^59\n"),
    ],
)
def test_what_ends_a_game_is_told(answers, arguments, moves, shown):
    record, said = run(answers, **arguments)
    assert (len(record.axis), record.finished) == (moves, False)
    assert said.endswith(shown)


def test_hints_are_the_solvers():
    # E8 lasts 7 moves under best play: proved in the tests of the solver.
    start = ((2, 0, 0), (0, 3, 0), (0, 0, 5))
    assert hint(start, (), "xyz", 60).endswith("the game then lasts at most 7 moves")
    after = {axis: solve(move(start, (0, 1, 2), axis)).value for axis in range(3)}
    best = max(after, key=after.__getitem__)
    assert hint(start, (0, 1, 2), "xyz", 60).startswith(f"{'xyz'[best]} is best")
    assert hint(((1, 0), (0, 1)), (0, 1), "xy").endswith("last 0 moves more")
    assert "hint: {" in run("h\n", seat="host")[1]


def command(monkeypatch, capsys, answers, *arguments):
    monkeypatch.setattr("sys.stdin", io.StringIO(answers))
    return commands.run(capsys, "play", *arguments)


def test_command_line(monkeypatch, capsys):
    code, out, err = command(monkeypatch, capsys, "x\n" * 50, "E8", "--as", "agent")
    assert (code, err, out.endswith("the game is over\n")) == (0, "", True)
    arguments = ("E8", "--as", "host", "--opponent", "choose_last", "--json")
    code, out, err = command(monkeypatch, capsys, "xy\nu\nxz\n", *arguments)
    result = json.loads(out)
    assert (code, result["variables"], result["finished"]) == (0, ["x", "y", "z"], False)
    assert (result["host"], result["agent"], result["moves"]) == ([[0, 2]], [2], 1)
    assert "You are the host." in err
    _, out, _ = command(monkeypatch, capsys, "", "--seed", "3", "--dimension", "2", "--json")
    start = json.loads(out)["positions"][0]
    assert sorted(map(tuple, start)) == sorted(random_position(2, seed=3))
    assert "coefficients" in command(monkeypatch, capsys, "", "3*x^2+y^3+z^5")[2]


@pytest.mark.parametrize(("name", "begins"), [("g.gif", b"GIF8"), ("g.json", b"{")])
def test_command_line_writes_the_game(monkeypatch, capsys, tmp_path, name, begins):
    path = tmp_path / name
    code, out, err = command(monkeypatch, capsys, "x\nx\n", "E8", "--out", str(path))
    assert (code, err) == (0, f"written to {path}\n")
    assert out.endswith("the game is over\n")
    assert path.read_bytes().startswith(begins)
    assert [each.name for each in tmp_path.iterdir()] == [name]
