"""The network for every size: other names of points and axes change nothing else, to the bit."""

import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.utils import ConstantSchedule

from resgym import GameSpec, functional
from resgym.game.spec import coords_to_action, host_action_table
from sb3_ext.ddqn.policies import PointsPolicy
from sb3_ext.networks.mlp import action_scores

SIZES = [(2, 20, 20), (3, 20, 20), (4, 5, 4), (5, 4, 3), (6, 4, 3)]


@pytest.fixture(scope="module", params=["host", "agent"])
def policy(request):
    """One network with weights of any kind, made for three axes and five points."""
    points = spaces.Box(-1.0, 20.0, (5, 3))
    torch.manual_seed(0)
    host = request.param == "host"
    space = points if host else spaces.Dict(points=points, coords=spaces.MultiBinary(3))
    actions = spaces.Discrete(4 if host else 3)
    kwargs = {"pair_width": 16, "width": 24}
    return PointsPolicy(
        space,
        actions,
        ConstantSchedule(0.0),
        extractor="any_size",
        features_extractor_kwargs=kwargs,
        net_arch=[16],
    )


@pytest.mark.parametrize(("dimension", "points", "value"), SIZES)
def test_scores_follow_the_names_of_axes_and_points_exactly(policy, dimension, points, value):
    state = functional.starts(GameSpec(dimension, points, max_value=value), 64, seed=1)
    seen, sets = functional.observe(state, scale=False), host_action_table(dimension)
    generator = torch.Generator().manual_seed(dimension)
    given = sets[torch.randint(len(sets), (64,), generator=generator)]
    axes, rows = (torch.randperm(n, generator=generator) for n in (dimension, points))

    def scores(x, coords):
        is_host = isinstance(policy.observation_space, spaces.Box)
        return action_scores(policy, x if is_host else {"points": x, "coords": coords})

    found, renamed = scores(seen, given), scores(seen[:, rows][:, :, axes], given[:, axes])
    if found.shape[1] == dimension:
        expected = found[:, axes]
    else:  # the new axis j is the old axis axes[j]
        old = torch.zeros_like(sets)
        old[:, axes] = sets
        expected = found[:, coords_to_action(old)]
    assert found.std() > 0
    assert torch.equal(renamed, expected)


def test_actions_valued_one_by_one_have_no_dueling_heads(policy):
    spaces_of = policy.observation_space, policy.action_space
    with pytest.raises(ValueError, match="dueling: got true"):
        PointsPolicy(*spaces_of, ConstantSchedule(0.0), extractor="any_size", dueling=True)
