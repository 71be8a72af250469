"""The game in the terminal, with typed answers, and what a move costs."""

import io
import json
import random

import pytest

from resgym.app.play import Match, hint, play, random_position, score
from resgym.game.exact import search_actions
from resgym.polynomials.parse import parse
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


def replayed(start, *moves):
    match = Match(parse(start), "both", None)
    for axes, axis in moves:
        match.play(axes, axis)
    return match


def test_costs_of_moves_by_hand():
    """On E6 the sets {x, z} and {x, y, z} keep to par, {x, y} and {y, z} cost a move."""
    good = score(replayed("E6", ((0, 2), 2)))
    assert good == {"par": 6, "left": 5, "costs": [[0, 0]], "lost": [0, 0], "stalled": 0}
    assert score(replayed("E6", ((0, 1), 1)))["costs"] == [[1, 0]]
    # The answer x leaves x^2 + y^3, which needs 3 moves.
    assert score(replayed("E6", ((0, 2), 0)))["costs"] == [[0, 2]]
    assert score(replayed("E6"), named=(0, 1))["left"] == 7


def test_a_game_without_progress_is_noticed():
    """The set {x, z} and the answer x never change x^2 + y^3."""
    found = score(replayed("E6", *[((0, 2), 0)] * 6))
    assert (found["left"], found["stalled"]) == (3, 5)
    assert found["costs"][1:] == [[3, 2]] * 5


@pytest.mark.parametrize("start", ["E6", "x^4*y+y^5*z+x*z^6", "x*y+z*w+x*z"])
def test_costs_add_up_to_the_length_of_the_game(start):
    draw = random.Random(start)
    match, best = replayed(start), solve(start).value
    for _ in range(12):
        if match.ending:
            break
        axes = draw.choice(search_actions(len(match.points[0])))
        match.play(axes, draw.choice(axes))
        found = score(match)
        assert (found["par"], found["left"]) == (best, solve(match.points).value)
        assert len(match.moves) + found["left"] == best + found["lost"][0] - found["lost"][1]
        assert all(cost >= 0 for move in found["costs"] for cost in move)


def test_costs_that_were_not_proved_in_time_are_none():
    found = score(replayed("x^91+y^97+z^89+x*y*z", ((0, 1), 1)), seconds=0)
    assert found.pop("costs") == [found.pop("lost")] == [[None, None]]
    assert found == dict.fromkeys(("par", "left", "stalled"))
