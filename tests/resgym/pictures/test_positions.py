"""Readable positions: text, pictures, and what the environments show."""

import importlib.util
import re
from pathlib import Path

import gymnasium
import pytest

from resgym.pictures.diagram import CHOSEN
from tests.reference import rule
from tests.reference.rule import EXAMPLE
from tests.resgym.envs.helpers import AGENT, BOTH, HOST, make_vec

# A game from the position of the examples: {x, z} is answered by x. The last is another game's.
FRAMES = Path(__file__).with_name("frames.txt").read_text(encoding="utf-8").split("== ")[1:]
START, NAMED, MOVED, OVER = (frame.partition("\n")[2] for frame in FRAMES)


def test_a_whole_game_is_returned_or_printed(capsys):
    """For people the first game is printed at every reset and step."""
    envs = [make_vec(BOTH, 2, render_mode=mode) for mode in ("ansi", "human")]
    for actions, frame in ((None, START), ([1, 0], NAMED), ([0, 1], MOVED)):
        for env in envs:
            env.step(actions) if actions else env.reset(options={"points": EXAMPLE})
        first, second = envs[0].render()
        assert (first, capsys.readouterr().out) == (frame, f"{frame}\n")
        assert envs[1].render() is None
        if frame == NAMED:
            assert second == NAMED.replace("{x, z}", "{x, y}")
    with pytest.raises(ValueError, match="action of row 0"):
        envs[1].step([9, 0])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("env_id", "opponent"),
    [
        (BOTH, None),
        *((HOST, name) for name in ("random", "greedy_points", ["random", "choose_last"])),
        *((AGENT, name) for name in ("random", "zeillinger")),
    ],
)
@pytest.mark.parametrize("mode", ["SAME_STEP", "NEXT_STEP"])
@pytest.mark.parametrize("backend", ["torch", "numba"])
def test_frames_show_the_move_that_led_from_the_last_position(env_id, opponent, mode, backend):
    if backend == "numba":
        pytest.importorskip("numba")
    limits = {"max_num_points": 6, "max_value": 9, "max_episode_steps": 4, "autoreset_mode": mode}
    env = make_vec(env_id, 6, render_mode="ansi", opponent=opponent, backend=backend, **limits)
    env.reset(seed=3)
    env.action_space.seed(3)
    shown = 0
    for _ in range(40):
        before = env.games
        env.step(env.action_space.sample())
        after = env.games
        for row, frame in enumerate(env.render()):
            head = frame.splitlines()[0]
            played = re.fullmatch(r"move (\d+): host {(.*)}, agent (.): . becomes .*", head)
            if played:
                axes = tuple("xyz".index(name) for name in played[2].split(", "))
                moved = rule.shifted(before.point_lists()[row], axes, "xyz".index(played[3]))
                assert after.point_lists()[row] == rule.canonical(moved)
                shown += 1
            else:  # a game that begins, or the host's half-move
                assert re.fullmatch(r"move \d+", head)
                restarted = after.episode[row] > before.episode[row]
                assert restarted or (env_id == BOTH and after.coords[row].any())
    assert shown > 50


def test_what_was_not_played_is_not_shown():
    kind = {"invalid_action": "noop", "autoreset_mode": "DISABLED"}
    env = make_vec(HOST, 2, render_mode="ansi", **kind)
    env.reset(options={"points": [[2**59, 2**59, 1], [2**59, 1, 2]]})
    env.step([0, 9])
    assert [frame.splitlines()[0] for frame in env.render()] == ["move 1", "move 0"]
    env.set_opponent("choose_first")
    env.reset(options={"points": EXAMPLE})
    assert env.render() == (START,) * 2
    env.step([1, 1])
    env.set_opponent("choose_last")
    assert env.render() == (MOVED,) * 2
    env.load_state_dict(env.state_dict())
    assert env.render()[0].startswith("move 1\n")


def test_one_seat_and_single_environments():
    env = make_vec(HOST, 1, render_mode="ansi", opponent="choose_first")
    env.reset(options={"points": EXAMPLE})
    env.step([1])
    assert env.render() == (MOVED,)
    env = make_vec(AGENT, 1, render_mode="ansi", opponent=lambda s, c, r: s.count * 0 + 1)
    env.reset(options={"points": EXAMPLE})
    assert env.render() == (NAMED,)
    single = gymnasium.make(HOST, render_mode="ansi", dimension=2, opponent="choose_first")
    single.reset(options={"points": [(2, 0), (0, 3)]})
    single.step(0)
    assert single.render() == OVER


def test_svg_frames_say_whose_turn_it_is():
    env = make_vec(BOTH, 1, render_mode="svg")
    env.reset(options={"points": EXAMPLE})
    (before,) = env.render()
    env.step([1])
    (named,) = env.render()
    assert "the host is to play" in before
    assert "the host named {x, z}; the agent is to play" in named
    assert named.count(CHOSEN) == before.count(CHOSEN) + 5  # two axes, two names, the note
    env.step([0])
    assert "the host is to play" in env.render()[0]


def test_what_cannot_be_drawn_is_said_at_once(monkeypatch):
    env = make_vec(HOST, 2)
    env.reset(seed=0)
    assert env.render() is None
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for mode, dimension, message in [
        ("svg", 4, r"^render_mode must be 'ansi' or 'human' for dimension 4 .*, got 'svg'$"),
        ("rgb_array", 4, r"^render_mode must be 'ansi' or 'human' for dimension 4 "),
        ("rgb_array", 3, r"^render_mode 'rgb_array' needs matplotlib.*\[plots\]$"),
    ]:
        with pytest.raises(ValueError, match=message):
            make_vec(HOST, 1, dimension=dimension, render_mode=mode)
    make_vec(HOST, 1, render_mode="svg").close()
