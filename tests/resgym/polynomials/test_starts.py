"""Sets of starts: the files that hold them, and the draws from them."""

import re
from collections import Counter

import gymnasium
import pytest
import torch

import resgym
from resgym.app.play import random_position
from resgym.game.rng import RowRandom, Stream
from resgym.game.spec import GameSpec
from resgym.measure.games import sample_games
from resgym.measure.rho import rho_starts
from resgym.polynomials.starts import read_starts
from tests.reference import rule
from tests.resgym.backends import every_backend
from tests.resgym.envs.helpers import HOST, restart

TEXT = """\
# positions, one a line
E8
[[2, 0, 0], [0, 3, 0], [0, 0, 5], [9, 9, 9]]   // the last point does not matter

x^2*z + y^3
x2+y3+z5
"""
CUSP = [(2, 0, 0), (0, 3, 0), (0, 0, 5)]
POSITIONS = [CUSP, CUSP, [(2, 0, 1), (0, 3, 0)], CUSP]


@pytest.fixture
def file(tmp_path):
    def write(text=TEXT):
        path = tmp_path / "starts.txt"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def test_a_file_holds_a_position_a_line(file):
    starts = read_starts(file(), GameSpec())
    found = map(sorted, starts.point_lists())
    # The third line has two variables that it names x and y; the game has three.
    assert [*found] == [*map(sorted, POSITIONS)]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", r"must contain positions, one a line, got none"),
        ("E8\nx^2+y^3\n", r"line 2: points\[0\] must have 3 coordinates \(dimension\), got 2"),
        ("\nE8\nx^2+\n", r"line 3: the polynomial ends too early"),
        ("[[1, 2, 3]]\n", r"line 1: points must be unfinished positions"),
        (f"E8\n{[[i, 9 - i, 0] for i in range(7)]}", r"line 2: points has 7 points"),
        (f"E8\n[[{2**60}, 0, 0], [0, 1, 0]]", r"line 2: points\[0\] must hold integers in 0\.\."),
        ("x" * 50_001, r"line 1: points must be a text of at most 50000 characters"),
    ],
)
def test_what_is_wrong_names_file_and_line(file, text, fault):
    path = file(text)
    with pytest.raises(ValueError, match=rf"^{re.escape(path)}(:|,) {fault}[^\n]*$"):
        read_starts(path, GameSpec(max_num_points=6))


@every_backend
@pytest.mark.parametrize("mode", ["SAME_STEP", "NEXT_STEP", "DISABLED"])
def test_every_episode_starts_from_the_set(backend, mode):
    """As the counter-based numbers of its row and episode say, on every backend."""
    starts = [[(1, 0), (0, 1)], [(3, 0), (1, 1), (0, 2)], [(5, 0), (0, 4)]]
    env = gymnasium.make_vec(
        HOST, num_envs=16, dimension=2, max_num_points=4, backend=backend, autoreset_mode=mode,
        starts=starts, max_episode_steps=3,
    )  # fmt: skip
    env.reset(seed=7)
    seen = Counter()
    for _ in range(30):
        games = env.unwrapped.games
        rng = RowRandom.for_episode(torch.arange(7, 23), games.episode)
        drawn = rng.at(0, Stream.START).integers(3).tolist()
        for (row,) in ((games.half_moves == 0) & ~games.ended).nonzero().tolist():
            assert games.point_lists()[row] == rule.canonical(starts[drawn[row]])
            seen[drawn[row]] += 1
        env.step([0] * 16)
        restart(env)
    assert min(seen[start] for start in range(3)) > 5


def test_measures_draw_what_they_say(file):
    """rho, its starts, recorded games and a game to play, all from the set and by the seed."""
    path, listed = file(), set(map(frozenset, POSITIONS))
    starts = rho_starts(GameSpec(), 500, 3, path)
    assert set(map(frozenset, starts.point_lists())) == listed
    many = {"games": 500, "seed": 3}
    again = resgym.rho("zeillinger", "random", **many, starts=path)
    given = resgym.rho("zeillinger", "random", **many, points=starts.points)
    assert again == given
    both = resgym.cross_play(["zeillinger"], ["random"], **many, starts=path)
    assert both.results["zeillinger"]["random"] == given
    forms = path, POSITIONS
    few = {"games": 20, "rule": "polyhedra"}
    one, other = (resgym.rho("random", "random", starts=each, **few) for each in forms)
    assert one == other
    games = sample_games("random", "random", games=20, starts=path)
    assert {frozenset(game.positions[0]) for game in games} <= listed
    env = gymnasium.make_vec(HOST, starts=path)
    for seed in range(5):
        env.reset(seed=seed)
        assert env.unwrapped.games.point_lists()[0] == random_position(seed=seed, starts=path)


def test_games_go_on_only_with_the_same_starts(file):
    def make(text):
        return gymnasium.make_vec(HOST, num_envs=4, starts=file(text)).unwrapped

    env = make("E8\nE7\n")
    env.reset(seed=0)
    state = env.state_dict()
    make("E8\nE7\n").load_state_dict(state)
    with pytest.raises(ValueError, match="game: the saved games have"):
        make("E8\nE6\n").load_state_dict(state)
    with pytest.raises(ValueError, match="starts are given"):
        env.set_stage(num_points=5)
