"""What the environments play is the game: every step replayed by the plain-Python rule."""

import pytest
import torch

from resgym.envs import AlternatingPlayers, HironakaVectorEnv
from tests.reference import rule
from tests.resgym.envs.helpers import AGENT, BOTH, HOST, act_random, alive, array, make_vec

pytestmark = pytest.mark.usefixtures("on_every_backend")

PLAIN = {"scale_observation": False, "max_num_points": 8, "max_value": 9}


def axes_of(coords):
    return tuple(axis for axis, chosen in enumerate(coords) if chosen)


def test_both_seats_play_the_game():
    env = make_vec(BOTH, 5, reward="points", **PLAIN)
    observation, _ = env.reset(seed=4)
    for time in range(80):
        points, coords = array(observation["points"]), array(observation["coords"])
        to_play = array(observation["to_play"])
        masks = array(env.action_masks())
        actions = act_random(env, time)
        observation, reward, terminated, truncated, info = env.step(actions)
        ended = array(terminated | truncated)
        for row in range(5):
            before, named = alive(points[row]), axes_of(coords[row])
            shown = info["final_obs"] if ended[row] else observation
            after = alive(array(shown["points"])[row])
            if to_play[row] == 0:
                assert named == ()
                assert masks[row].all()
                assert after == before
                assert axes_of(array(shown["coords"])[row]) == rule.host_actions(3)[actions[row]]
                assert int(shown["to_play"][row]) == 1
                assert float(reward[row]) == 0.0
                assert array(info["rewards"])[row].tolist() == [0.0, 0.0]
            else:
                assert axes_of(masks[row]) == named
                assert after == rule.move(before, named, int(actions[row]))
                assert axes_of(array(shown["coords"])[row]) == ()
                removed = float(len(before) - len(after))
                assert array(info["rewards"])[row].tolist() == [removed, -removed]
                assert float(reward[row]) == -removed


def test_a_custom_reward_sees_the_move():
    seen = []

    def reward(move):
        seen.append(move)
        return (move.before.count * 10 + move.after.count).to(torch.float64)

    for env_id, role in ((HOST, "host"), (AGENT, "agent")):
        env = make_vec(env_id, 3, reward=reward, **PLAIN)
        env.reset(seed=0)
        before = env.games.position
        _, got, terminated, _, _ = env.step(act_random(env, 0))
        move = seen[-1]
        assert move.role == role
        assert torch.equal(move.before.points, before.points)
        after = [
            rule.move(points, axes_of(coords), int(axis))
            for points, coords, axis in zip(
                before.point_lists(), move.coords, move.axis, strict=True
            )
        ]
        assert move.after.point_lists() == after
        assert torch.equal(move.finished, terminated)
        assert got.dtype == torch.float32
        assert got.tolist() == [
            10.0 * len(points) + len(left)
            for points, left in zip(before.point_lists(), after, strict=True)
        ]


def test_the_wrapper_is_what_the_ids_make():
    made = make_vec(AGENT, 3, opponent="zeillinger", max_episode_steps=6)
    built = AlternatingPlayers(
        HironakaVectorEnv(3, max_episode_steps=12), seat="agent", opponent="zeillinger"
    )
    first, _ = made.reset(seed=5)
    second, _ = built.reset(seed=5)
    for time in range(30):
        assert torch.equal(first["points"], second["points"])
        assert torch.equal(first["coords"], second["coords"])
        actions = act_random(made, time)
        first, *rest, _ = made.step(actions)
        second, *other, _ = built.step(actions)
        assert all(torch.equal(a, b) for a, b in zip(rest, other, strict=True))
    # Half-moves: an odd limit is rounded up to whole moves.
    for half_moves, moves in ((5, 3), (None, None)):
        env = AlternatingPlayers(HironakaVectorEnv(1, max_episode_steps=half_moves))
        assert env.plan.max_episode_steps == moves
