"""The PettingZoo environment: PettingZoo's own tests, and games equal to Gymnasium's."""

import gymnasium
import numpy as np
import pytest

pytest.importorskip("pettingzoo", reason="needs the extra pettingzoo")

from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, render_test, seed_test

from resgym import hironaka_v0
from resgym.hironaka_v0 import AGENT, HOST

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.mark.parametrize("dimension", [2, 3, 5])
def test_its_api(dimension):
    api_test(hironaka_v0.env(dimension=dimension, max_num_points=6), num_cycles=300)
    parallel_api_test(hironaka_v0.parallel_env(dimension=dimension), num_cycles=100)


def test_its_seeds_and_pictures():
    seed_test(hironaka_v0.env, num_cycles=50)
    parallel_seed_test(hironaka_v0.parallel_env, num_cycles=50)
    pytest.importorskip("matplotlib", reason="needs the extra plots")
    svg = {"svg": lambda frame: frame.startswith("<svg")}
    render_test(hironaka_v0.env, custom_tests=svg)


def test_its_limit():
    """(k, 1, 0) and (k, 0, 1) for ever: the limit ends the game."""
    game = hironaka_v0.env(max_cycles=3)
    game.reset(options={"points": [(0, 1, 0), (0, 0, 1)]})
    for move in range(6):
        assert not any(game.truncations.values())
        game.step(3 if move % 2 == 0 else 0)
    assert game.truncations == {HOST: True, AGENT: True}
    assert game.terminations == {HOST: False, AGENT: False}


def test_games_are_those_of_gymnasium():
    turns = hironaka_v0.env(dimension=3)
    both = gymnasium.make("resgym/Hironaka-v0", dimension=3)
    rng = np.random.default_rng(0)
    for seed in range(5):
        turns.reset(seed=seed)
        expected, _ = both.reset(seed=seed)
        totals = dict.fromkeys((HOST, AGENT), 0.0)
        for seat in turns.agent_iter():
            seen, reward, terminated, truncated, _ = turns.last()
            totals[seat] += reward
            assert np.array_equal(seen["observation"][:-1], expected["points"])
            assert np.array_equal(seen["observation"][-1], expected["coords"])
            if terminated or truncated:
                turns.step(None)
                continue
            legal = both.unwrapped.action_masks()
            assert np.array_equal(seen["action_mask"], legal[: len(seen["action_mask"])])
            action = rng.choice(np.flatnonzero(seen["action_mask"]))
            turns.step(action)
            expected, *_ = both.step(action)
        assert totals == {HOST: 1.0, AGENT: -1.0}


def test_an_illegal_axis_loses():
    game = hironaka_v0.env()
    game.reset(seed=0)
    game.step(0)  # the axes {0, 1}
    game.step(2)
    assert (game.terminations, game.rewards[AGENT]) == ({HOST: True, AGENT: True}, -1)


def test_at_once_an_axis_outside_of_the_set_stands_for_the_next_one_in_it():
    game = hironaka_v0.parallel_env()
    answers = {}
    for axis in range(3):
        seen, _ = game.reset(seed=0, options={"points": [(5, 0, 0), (0, 7, 0), (0, 0, 9)]})
        assert seen[AGENT]["action_mask"].all()
        assert not seen[AGENT]["observation"][-1].any()
        seen, *_ = game.step({HOST: 0, AGENT: axis})  # the axes {0, 1}
        answers[axis] = seen[HOST]["observation"]
    assert np.array_equal(answers[2], answers[0])
    assert not np.array_equal(answers[1], answers[0])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"max_cycles": 0}, "max_cycles"),
        ({"num_envs": 3}, "num_envs"),
        ({"dimension": 1}, "dimen"),
        ({"seat": "host"}, "^seat is for Gymnasium's environments"),
        ({"max_episode_steps": 9}, "^max_episode_steps is for Gymnasium's environments"),
    ],
)
def test_bad_arguments_are_named(arguments, words):
    with pytest.raises((ValueError, TypeError), match=words):
        hironaka_v0.env(**arguments)
