"""Resets: seeds, given positions, and some rows only."""

import numpy as np
import pytest
import torch

from tests.reference.rule import EXAMPLE
from tests.resgym.envs.helpers import AGENT, HOST, IDS, SHORT, act_random, alive, array, make_vec
from tests.resgym.game.lockstep import reference_start
from tests.resgym.game.splitmix import step_key

pytestmark = pytest.mark.usefixtures("on_every_backend")

CUSP = [(2, 0, 0), (0, 3, 0)]


def first_points(env, **arguments):
    env.reset(**arguments)
    return env.games.point_lists()


SIZES = [
    {},
    {"dimension": 2, "max_num_points": 2, "max_value": 1},
    {"max_num_points": 3, "max_value": 2, "reposition": True},
    {"dimension": 10, "max_num_points": 12, "max_value": 2**31 - 2},
]


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_starts_are_those_of_the_documented_key(env_id, sizes):
    """Episode e of a row seeded s starts from the key (s, e, 0, 0); row i of seed s is s + i."""
    env = make_vec(env_id, 6, autoreset_mode="DISABLED", **sizes)
    draws = 0
    for seed in (0, 12345, 2**62):
        env.reset(seed=seed)
        for episode in range(3):
            keys = [step_key(seed + row, episode, 0, 0) for row in range(6)]
            expected = [reference_start(env.plan.spec, key) for key in keys]
            assert env.games.point_lists() == [points for points, _ in expected]
            draws = max(draws, *(number for _, number in expected))
            env.reset()
    assert draws >= 3 or sizes.get("max_num_points", 20) > 3


def test_seeds_in_every_form():
    env = make_vec(HOST, 3)
    expected = first_points(env, seed=7)
    for seed in ([7, 8, 9], (7, 8, 9), np.array([7, 8, 9]), torch.tensor([7, 8, 9]), np.int64(7)):
        assert first_points(env, seed=seed) == expected
    assert first_points(env, seed=[9, 8, 7]) == expected[::-1]
    assert first_points(env, seed=2**63 - 3) != expected


def test_a_seed_of_none_keeps_a_row_going():
    env = make_vec(HOST, 3)
    first = first_points(env, seed=[1, 2, 3])
    second = first_points(env)
    assert all(a != b for a, b in zip(first, second, strict=True))
    # Row 1 goes on to its third episode, the others start again.
    third = first_points(env, seed=[1, None, 3])
    assert third[0] == first[0]
    assert third[2] == first[2]
    assert third[1] not in (first[1], second[1])
    assert first_points(env, seed=[1, 2, 3]) == first
    assert first_points(env) == second


def test_without_a_seed_the_first_reset_takes_fresh_entropy():
    starts = [first_points(make_vec(HOST, 3)) for _ in range(3)]
    starts += [first_points(make_vec(HOST, 3), seed=[None] * 3)]
    flat = [tuple(points) for each in starts for points in each]
    assert len(set(flat)) == len(flat)


@pytest.mark.parametrize("env_id", IDS)
def test_one_given_position_for_all_rows(env_id):
    env = make_vec(env_id, 3, scale_observation=False, max_num_points=6)
    dominated = [*EXAMPLE, (5, 5, 5), (0, 0, 4)]
    observation, info = env.reset(seed=0, options={"points": dominated})
    points = observation if env_id == HOST else observation["points"]
    for row in range(3):
        assert alive(array(points)[row]) == EXAMPLE
    assert info == {}
    if env_id == AGENT:
        # The hosts are rows of their own: not all name the same set.
        observations = [env.reset(options={"points": EXAMPLE})[0]["coords"] for _ in range(8)]
        assert len({tuple(row) for each in observations for row in each.tolist()}) > 1


@pytest.mark.parametrize("env_id", IDS)
def test_given_positions_of_some_rows(env_id):
    env = make_vec(env_id, 4, **SHORT)
    env.reset(seed=3)
    env.step(act_random(env, 0))
    before = env.state_dict()["fields"]
    mask = np.array([True, False, True, False])[::-1]
    options = {"points": CUSP, "reset_mask": mask}
    env.reset(seed=50, options=options)
    after = env.state_dict()["fields"]
    assert all(torch.equal(after[name][::2], before[name][::2]) for name in before)
    assert env.games.seed.tolist() == [3, 51, 5, 53]
    assert env.games.point_lists()[1::2] == [CUSP, CUSP]
    assert env.games.lengths.tolist() == [1, 0, 1, 0]
    assert list(options) == ["points", "reset_mask"]
    assert mask.tolist() == [False, True, False, True]
