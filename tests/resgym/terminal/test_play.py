"""The game in the terminal, with typed answers."""

from __future__ import annotations

import io
import json

import gymnasium
import pytest

import resgym  # noqa: F401  registers the environments
from resgym.game.actions import action_axes
from resgym.game.spec import GameSpec
from resgym.game.state import state_from_points
from resgym.solver.solve import solve
from resgym.terminal.play import agent_hint, host_hint, play, random_position
from tests.reference.rule import move
from tests.resgym import commands

E8 = "x^2+y^3+z^5"


def run(answers: str, points=E8, seat="agent", **kwargs):
    target = io.StringIO()
    record = play(points, seat, source=io.StringIO(answers), target=target, **kwargs)
    return record, target.getvalue()


def follow(record) -> None:
    """Every move is one of the plain-Python rule."""
    for before, axes, axis, after in zip(
        record.positions, record.axes, record.axis, record.positions[1:], strict=False
    ):
        assert axis in axes
        assert sorted(after) == sorted(move(before, axes, axis))


def test_an_agent_plays_to_the_end():
    record, shown = run("x\n" * 50, opponent="zeillinger")
    assert record.finished
    follow(record)
    assert "one monomial is left: the game is over" in shown
    assert shown.count("choose: ") == len(record.axis)


@pytest.mark.parametrize("answers", ["x y\n", "xy\n", "{x, y}\n", "y x\n", "0\n", " x,y \n"])
def test_a_host_may_name_a_set_in_many_ways(answers):
    record, _ = run(answers, seat="host", opponent="choose_last")
    assert record.axes == [(0, 1)]
    assert record.axis == [1]
    follow(record)


@pytest.mark.parametrize(
    ("seat", "answer"),
    [("host", "x"), ("host", "4"), ("host", "9" * 5000), ("host", "x q"), ("host", ""),
     ("host", "²"), ("agent", "z"), ("agent", "3"), ("agent", "xy"),
     ("agent", "-1"), ("agent", "foo")],
)  # fmt: skip
def test_bad_answers_get_one_line_and_are_asked_again(seat, answer):
    record, shown = run(f"{answer}\n1\n", seat=seat, opponent=None)
    assert len(record.axis) == 1
    (line,) = [line for line in shown.splitlines() if line.startswith("choose one of")]
    assert line.endswith(f"got {answer.strip()[:40]!r}")


def test_numbers_are_the_actions_of_the_environment():
    """Three axes have the sets {x,y}, {x,z}, {y,z}, {x,y,z}; an agent's action is the axis."""
    for action, axes in enumerate(action_axes(3)):
        record, _ = run(f"{action}\n", seat="host", opponent="choose_last")
        assert record.axes == [axes]
    record, shown = run("1\n2\n", opponent=lambda state, coords, rng: state.count * 0 + 1)
    assert record.axis == [2]  # the set is {x, z}: 1 would be y
    assert "0) x  2) z" in shown


def test_undo_takes_whole_moves_back():
    record, shown = run("y\ny\nu\nundo\nu\ny\n")
    assert "there is no move to take back" in shown
    assert shown.count("is taken back") == 2
    straight, _ = run("y\n")
    assert record == straight


@pytest.mark.parametrize(("answers", "ended"), [("x\n", "end of input"), ("x\nq\nx\n", "stopped")])
def test_leaving_keeps_what_was_played(answers, ended):
    record, shown = run(answers)
    assert len(record.axis) == 1
    assert not record.finished
    assert ended in shown.splitlines()[-1]
    assert "1. x^2 + y^3 + z^5   host {x, y}, agent x\nafter 1 move: x^2 + z^5" in shown


def test_a_limit_cuts_the_game():
    record, shown = run("y\n" * 9, max_moves=2)
    assert len(record.axis) == 2
    assert shown.endswith("cut after 2 moves\n")


def test_an_overflow_ends_the_game():
    record, shown = run("0\n", [(2**59, 1), (0, 2**59)], seat="host", opponent="choose_first")
    assert record.axis == []
    assert shown.endswith("stopped: an exponent would pass 2^59\n")


def test_variables_keep_their_names_and_come_before_commands():
    record, shown = run("u\n", "u^2+h^3", opponent="all_coord")
    assert record.axis == [1]  # in alphabetical order h is the first axis
    assert "undo, hint, quit (q)" in shown
    assert "u^2" in shown


def test_hints_are_the_solvers():
    # E8 lasts 7 moves under best play: proved in the tests of the solver.
    state = state_from_points([(2, 0, 0), (0, 3, 0), (0, 0, 5)], GameSpec(3))
    value = solve("E8").value
    hint = host_hint(state, "xyz", seconds=60)
    assert hint.endswith(f"the game then lasts at most {value} moves")
    _, shown = run("h\n", seat="host")
    assert "hint: {" in shown


def test_an_agents_hint_compares_the_axes():
    long, short = [(2, 0, 0), (0, 3, 0), (0, 0, 5)], [(2, 0, 0), (0, 3, 0)]
    hint = agent_hint({0: short, 2: long}, "xyz", seconds=60)
    assert hint == f"hint: z is best, the game can then last {solve(long).value} moves more"
    assert agent_hint({0: [(1, 0)], 1: [(2, 2)]}, "xy") == "hint: every axis ends the game"


def test_hints_without_time_say_so():
    generator = random_position(4, 12, 50, seed=1)
    state = state_from_points([list(point) for point in generator], GameSpec(4))
    assert "as Zeillinger would play" in host_hint(state, "xyzw", seconds=0.0)
    after = {0: list(generator), 1: list(generator)}
    assert "had not the time" in agent_hint(after, "xyzw", seconds=0.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seat": "judge"}, "^seat must be 'host' or 'agent', got 'judge'"),
        ({"points": "x^2+x^3*y"}, "^points must be an unfinished position.* x\\^2 is left"),
        ({"opponent": "nobody"}, "nobody"),
        ({"max_moves": 0}, "^max_moves must be at least 1"),
        ({"seed": -1}, "^seed must be"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        run("", **arguments)


def test_random_starts_are_those_of_the_environment():
    env = gymnasium.make_vec("resgym/HironakaHost-v0", num_envs=1)
    env.reset(seed=5)
    assert random_position(seed=5) == env.unwrapped.games.point_lists()[0]


# The command line.


def command(monkeypatch, capsys, answers: str, *arguments: str):
    monkeypatch.setattr("sys.stdin", io.StringIO(answers))
    return commands.run(capsys, "play", *arguments)


def test_command_line(monkeypatch, capsys):
    code, out, err = command(monkeypatch, capsys, "x\n" * 50, "E8", "--as", "agent")
    assert (code, err) == (0, "")
    assert out.startswith("You are the agent.")
    assert out.endswith("the game is over\n")


def test_command_line_prints_only_the_record_as_json(monkeypatch, capsys):
    arguments = ("E8", "--as", "host", "--opponent", "choose_last", "--json")
    code, out, err = command(monkeypatch, capsys, "xy\nu\nxz\n", *arguments)
    result = json.loads(out)
    assert code == 0
    assert result["variables"] == ["x", "y", "z"]
    assert (result["host"], result["agent"], result["moves"]) == ([[0, 2]], [2], 1)
    assert result["finished"] is False
    assert "You are the host." in err


def test_command_line_draws_a_start(monkeypatch, capsys):
    arguments = ("--seed", "3", "--dimension", "2", "--json")
    _, out, _ = command(monkeypatch, capsys, "", *arguments)
    start = json.loads(out)["positions"][0]
    assert [tuple(point) for point in start] == random_position(2, seed=3)


def test_command_line_says_that_coefficients_do_not_matter(monkeypatch, capsys):
    code, _, err = command(monkeypatch, capsys, "", "3*x^2+y^3+z^5")
    assert code == 0
    assert "coefficients and signs are ignored" in err


@pytest.mark.parametrize(
    ("name", "begins"), [("g.gif", b"GIF8"), ("g.html", b"<!DOCTYPE html"), ("g.json", b"{")]
)
def test_command_line_writes_the_game(monkeypatch, capsys, tmp_path, name, begins):
    path = tmp_path / name
    code, out, err = command(monkeypatch, capsys, "x\nx\n", "E8", "--out", str(path))
    assert (code, err) == (0, f"written to {path}\n")
    assert out.endswith("the game is over\n")
    assert path.read_bytes().startswith(begins)
    assert [each.name for each in tmp_path.iterdir()] == [name]
    if name == "g.json":
        _, out, _ = command(monkeypatch, capsys, "x\nx\n", "E8", "--json")
        assert json.loads(path.read_text()) == json.loads(out)
    if name == "g.html":
        assert path.read_text().count("<svg") == 3
