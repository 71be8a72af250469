"""What the environments play is the game: every step replayed by the plain-Python rule."""

import pytest
import torch

from resgym.envs.environments import AlternatingPlayers, HironakaVectorEnv
from tests.reference import rule
from tests.resgym.envs.helpers import AGENT, BOTH, HOST, act_random, alive, array, make_vec, played

pytestmark = pytest.mark.usefixtures("on_every_backend")

PLAIN = {"scale_observation": False, "max_num_points": 8, "max_value": 9}


def axes_of(coords):
    return tuple(axis for axis, chosen in enumerate(coords) if chosen)


def test_both_seats_play_the_game_and_a_reward_sees_it():
    """The set of a move is the one that is answered, none where a host is to play."""
    seen = []

    def reward(move):
        seen.append(move)
        sign = 1 if move.role == "host" else -1
        return sign * (move.before.count - move.after.count).to(torch.float64)

    env = make_vec(BOTH, 5, reward=reward, **PLAIN)
    observation, _ = env.reset(seed=4)
    seen.clear()
    for time in range(80):
        points = array(observation["points"])
        coords = array(observation["coords"])
        to_play = array(observation["to_play"])
        masks = array(env.action_masks())
        actions = act_random(env, time)
        observation, reward_seen, terminated, truncated, info = env.step(actions)
        ended = array(terminated | truncated)
        assert [move.role for move in seen[-2:]] == ["host", "agent"]
        assert all(move.coords.tolist() == coords.astype(bool).tolist() for move in seen[-2:])
        for row in range(5):
            before = alive(points[row])
            named = axes_of(coords[row])
            shown = info["final_obs"] if ended[row] else observation
            after = alive(array(shown["points"])[row])
            removed = float(len(before) - len(after))
            then = axes_of(array(shown["coords"])[row])
            if to_play[row] == 0:
                assert masks[row].all()
                assert (named, after) == ((), before)
                assert then == rule.host_actions(3)[actions[row]]
                assert int(shown["to_play"][row]) == 1
            else:
                assert axes_of(masks[row]) == named
                assert after == rule.move(before, named, int(actions[row]))
                assert then == ()
            assert array(info["rewards"])[row].tolist() == [removed, -removed]
            assert float(reward_seen[row]) == -removed


@pytest.mark.parametrize(("env_id", "role"), [(HOST, "host"), (AGENT, "agent")])
def test_a_reward_sees_the_move_of_its_seat(env_id, role):
    seen = []

    def reward(move):
        seen.append(move)
        return (move.before.count * 10 + move.after.count).to(torch.float64)

    env = make_vec(env_id, 3, reward=reward, **PLAIN)
    env.reset(seed=0)
    before = env.games.position.point_lists()
    _, got, terminated, _, _ = env.step(act_random(env, 0))
    move = seen[-1]
    after = [
        rule.move(points, axes_of(coords), int(axis))
        for points, coords, axis in zip(before, move.coords, move.axis, strict=True)
    ]
    assert (move.role, move.before.point_lists(), move.after.point_lists()) == (role, before, after)
    assert torch.equal(move.finished, terminated)
    assert got.dtype == torch.float32
    assert got.tolist() == [10.0 * len(a) + len(b) for a, b in zip(before, after, strict=True)]


def test_the_wrapper_is_what_the_ids_make():
    made = make_vec(AGENT, 3, opponent="zeillinger", max_episode_steps=6)
    both = HironakaVectorEnv(3, max_episode_steps=12)
    built = AlternatingPlayers(both, seat="agent", opponent="zeillinger")
    assert played(made, seed=5) == played(built, seed=5)
    # Half-moves: an odd limit is rounded up to whole moves.
    env = AlternatingPlayers(HironakaVectorEnv(1, max_episode_steps=5))
    assert env.plan.max_episode_steps == 3
