"""Who answers: one player, one per row, replaced while playing."""

from functools import partial

import pytest
import torch

from resgym.game.spec import coords_to_action
from resgym.players import make_host
from tests.reference import rule
from tests.resgym.envs.helpers import AGENT, HOST, SHORT, act_random, make_vec, played

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


def always(number, state, coords, rng):
    """The set of this number, or the axis; rows that begin anew are asked about a set of two."""
    return torch.full_like(state.count, number) % (4 if coords is None else coords.sum(1))


@pytest.mark.parametrize("mode", ["SAME_STEP", "NEXT_STEP"])
@pytest.mark.parametrize("env_id", [HOST, AGENT])
def test_games_are_dealt_out_in_turn(env_id, mode):
    """Row i of N in its episode e is game i + N e, and meets number i + N e modulo 3."""
    players = [partial(always, number) for number in range(3)]
    env = make_vec(env_id, 4, opponent=players, autoreset_mode=mode, **SHORT)
    env.reset(seed=50)
    for time in range(40):
        before = env.games
        env.step([3] * 4 if env_id == HOST else act_random(env, time))
        met = (torch.arange(4) + 4 * before.episode) % 3
        going = ~before.ended & (env.games.episode == before.episode)
        for row in going.nonzero()[:, 0].tolist():
            if env_id == AGENT:
                assert coords_to_action(before.coords)[row] == met[row]
            else:  # the set of all axes, so that each agent may take its own
                moved = rule.move(before.point_lists()[row], (0, 1, 2), int(met[row]))
                assert env.games.point_lists()[row] == moved
    assert before.episode.min() > 1


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
