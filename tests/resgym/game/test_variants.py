"""The other rules: their starts, and their moves through the environments."""

import re

import gymnasium
import pytest
import torch

from resgym.game.rules import random_starts
from resgym.game.spec import GameSpec
from resgym.game.state import state_from_points
from tests.resgym.envs.helpers import same
from tests.resgym.games import random_rows

RULES = ["polyhedra", "thom"]


@pytest.mark.parametrize("rule", RULES)
def test_random_starts_are_unfinished(rule):
    for size, top, unit in ((5, 9, 4), (4, 3, 9)):
        spec = GameSpec(3, size, top, rule=rule, unit=unit if rule == "polyhedra" else 1)
        starts = random_starts(spec, random_rows(50))
        assert not starts.finished().any()
        if rule == "thom":
            assert {*starts.points[:, -2].flatten().tolist()} == {1, 2, 3}
            marked = map(tuple, starts.points[:, -1].tolist())
            assert all(map(list.__contains__, starts.point_lists(), marked))


def test_the_distinguished_point_is_moved_with_the_others():
    spec = GameSpec(2, reposition=True, rule="thom")
    assert state_from_points([(1, 3), (2, 1)], spec).points[0, -1].tolist() == [1, 0]


@pytest.mark.parametrize("rule", ["basic", *RULES])
@pytest.mark.parametrize("seat", ["", "Host", "Agent"])
def test_masks_are_exactly_what_a_step_takes(rule, seat):
    """Every action is tried in every position of some games; those masked out are refused."""
    env = gymnasium.make_vec(f"resgym/Hironaka{seat}-v0", num_envs=4, rule=rule, max_num_points=5)
    env.reset(seed=1)
    for step in range(12):
        masks = env.unwrapped.action_masks()
        state = env.unwrapped.state_dict()
        for action in range(masks.shape[1]):
            env.unwrapped.load_state_dict(state)
            refused = (~masks[:, action]).nonzero()[:, 0].tolist()
            if not refused:
                env.step(torch.full((4,), action))
                continue
            allowed = masks[refused[0]].nonzero()[:, 0].tolist()
            said = f"action of row {refused[0]} must be one of {allowed}, got {action}"
            with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
                env.step(torch.full((4,), action))
            assert same(env.unwrapped.state_dict(), state)
        env.unwrapped.load_state_dict(state)
        env.step(torch.tensor([int(m.nonzero()[step % int(m.sum()), 0]) for m in masks]))
