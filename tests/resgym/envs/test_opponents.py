"""Who answers: one player, one per row, replaced while playing."""

import pytest

from resgym.game.rng import Stream
from resgym.players import make_agent, make_host
from tests.resgym.envs.helpers import AGENT, HOST, SHORT, act_random, make_vec, played
from tests.resgym.game import splitmix

pytestmark = pytest.mark.usefixtures("on_every_backend")

MANY = {
    HOST: ["random", "choose_first", "greedy_points", "choose_last", "choose_first"],
    AGENT: ["random", "zeillinger", "random_pair", "all_coord", "zeillinger"],
}


@pytest.mark.parametrize("mode", ["SAME_STEP", "NEXT_STEP"])
@pytest.mark.parametrize("env_id", [HOST, AGENT])
def test_one_opponent_per_row_equals_separate_environments(env_id, mode):
    names = MANY[env_id]
    options = {"autoreset_mode": mode, **SHORT}
    mixed, *separate = (
        [*zip(*played(make_vec(env_id, 5, opponent=each, **options), seed=21), strict=True)]
        for each in (names, *names)
    )
    assert [rows[row] for row, rows in enumerate(separate)] == mixed
    # It makes a difference who answers.
    assert separate[0][1] != separate[1][1]


@pytest.mark.parametrize("mode", ["SAME_STEP", "NEXT_STEP"])
@pytest.mark.parametrize("env_id", [HOST, AGENT])
def test_games_are_dealt_out_in_turn(env_id, mode):
    """Row i of N in its episode e is game i + N e, and meets number i + N e modulo 3."""
    names = MANY[env_id][:2] + MANY[env_id][3:4]
    make = make_agent if env_id == HOST else make_host
    asked = []

    def recording(name):
        def act(state, coords, rng):
            asked.append((name, rng.key.tolist()))
            return make(name).act(state, coords, rng)

        return act

    options = {"autoreset_mode": mode, **SHORT}
    env = make_vec(env_id, 4, opponent=[recording(name) for name in names], **options)
    env.reset(seed=[50, 51, 52, 53])
    for time in range(40):
        env.step(act_random(env, time))
    # The random numbers that a player was given tell which game it was asked in.
    stream = Stream.AGENT if env_id == HOST else Stream.HOST
    games = {
        splitmix.signed(splitmix.step_key(50 + row, episode, step, stream)): (row, episode)
        for row in range(4)
        for episode in range(45)
        for step in range(16)
    }
    met = set()
    for name, keys in asked:
        for row, episode in map(games.__getitem__, keys):
            assert name == names[(row + 4 * episode) % 3]
            met.add((row, episode))
    # Several games of every row were seen, so its opponents changed.
    assert all((row, 2) in met for row in range(4))


def test_a_refused_opponent_leaves_the_old_one():
    env = make_vec(HOST, 3, opponent="choose_first")
    expected = played(make_vec(HOST, 3, opponent="choose_first"), seed=21)
    cases = [
        (7, None, TypeError, "opponent must be a name"),
        (make_host("random"), None, ValueError, "opponent must play the agent"),
        ([], None, ValueError, "opponent must be at least one player, got none"),
        (["random", "nobody"], None, ValueError, "opponent .*'nobody'"),
        ({"random": 0}, None, ValueError, "the weight of 'random' must be a number above 0"),
        ({"random": 1}, [0, 0, 0], ValueError, "assignment must be in"),
        (["random"], [0, 0], ValueError, r"assignment must have shape \(3,\), got \(2,\)"),
        (["random"], [0, 1, 0], ValueError, "assignment must be in"),
        (["random"], [0.0, 0.0, 0.0], TypeError, "assignment must be integers"),
    ]
    for opponent, assignment, kind, message in cases:
        with pytest.raises(kind, match=rf"^[^\n]*{message}[^\n]*$"):
            env.set_opponent(opponent, assignment)
    assert played(env, seed=21) == expected
