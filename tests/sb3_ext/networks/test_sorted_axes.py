"""Networks that take games which differ by the names of axes for one."""

from itertools import permutations

import pytest
import torch
from gymnasium import spaces

from resgym.game.spec import host_action_table
from sb3_ext.checkpoints.policy_description import build_policy, describe_policy
from sb3_ext.ddqn import QPolicy
from sb3_ext.networks.sorted_axes import SortedAxes, rows_in_order


def policy(sort_axes, space=None, actions=4, **arguments):
    torch.manual_seed(3)
    return QPolicy(
        spaces.Box(-1.0, 1.0, (5, 3)) if space is None else space,
        spaces.Discrete(actions),
        lambda _: 1e-3,
        **{"net_arch": [16], "extractor": "ordered_points", "sort_axes": sort_axes, **arguments},
    )


def games(dimension=3, number=400):
    """Points in order, some rows absent, no two axes with equal sums, as observed or shifted."""
    source = torch.Generator().manual_seed(1)
    points = torch.randint(0, 60, (number, 5, dimension), generator=source) / 60.0
    absent = torch.arange(5) >= torch.randint(2, 6, (number, 1), generator=source)
    absent = absent[:, :, None]
    clear = torch.ones(number, dtype=torch.bool)
    for lowest in (0.0, points.masked_fill(absent, torch.inf).amin(1, keepdim=True)):
        sums = (points - lowest).masked_fill(absent, 0.0).sum(1).sort(1).values
        clear &= (sums[:, 1:] > sums[:, :-1] + 1e-3).all(1)
    return rows_in_order(points.masked_fill(absent, -1.0)[clear])


def renamed(points, axes):
    """The games with old axes in a new order, rows ordered by Python's own sorting."""
    rows = [
        sorted(([x[old] for old in axes] for x in game), reverse=True) for game in points.tolist()
    ]
    return torch.tensor(rows)


@pytest.mark.parametrize("extractor", ["ordered_points", "point_set", "point_pairs"])
@pytest.mark.parametrize("dimension", [2, 3, 4])
def test_games_with_other_names_of_axes_have_the_same_values(extractor, dimension):
    table = host_action_table(dimension)
    number = {tuple(row.nonzero()[:, 0].tolist()): action for action, row in enumerate(table)}
    space, points = spaces.Box(-1.0, 1.0, (5, dimension)), games(dimension)
    every = list(range(dimension))
    network = policy(every, space, len(table), extractor=extractor).q_net
    plain = policy(None, space, len(table), extractor=extractor).q_net
    values = network(points)
    differs = False
    for axes in permutations(every):
        # The new axis j is the old axis axes[j], so a set of new axes is one of old ones.
        old = [number[tuple(sorted(axes[axis] for axis in each))] for each in number]
        image = renamed(points, axes)
        assert torch.allclose(network(image), values[:, old], atol=1e-5)
        differs |= not torch.allclose(plain(image), plain(points)[:, old], atol=1e-5)
        # The network itself sees the order whose sums descend.
        seen = image
        if extractor != "ordered_points":  # which knows nothing of where a set lies
            seen = image - image.masked_fill(image < 0, torch.inf).amin(1, keepdim=True)
        sums = seen.masked_fill(image < 0, 0.0).sum(1)
        ready = (sums[:, :-1] > sums[:, 1:] + 1e-4).all(1)
        assert ready.any()
        assert torch.allclose(network(image)[ready], plain(image)[ready], atol=1e-6)
    assert differs


@pytest.mark.parametrize("extractor", ["point_set", "point_pairs"])
def test_a_translation_changes_nothing_for_networks_that_pool(extractor):
    points, network = games(), policy([0, 1, 2], extractor=extractor).q_net
    points = (60 * points).round().clamp(min=-1.0)  # whole numbers, which a translation keeps exact
    moved = torch.where(points < 0, -1.0, points + torch.tensor([0.0, 512.0, 64.0]))
    assert torch.equal(network(moved), network(points))


def test_axes_that_are_not_named_stay():
    points = games()
    images, actions = SortedAxes([0, 2], 3, 4, False)(points)
    lead = (points[:, :, 0] - points[:, :, 2]).sum(1)
    assert torch.equal(images[lead > 1e-4], points[lead > 1e-4])
    assert torch.equal(images[lead < -1e-4], renamed(points, (2, 1, 0))[lead < -1e-4])
    # {0, 1} of the one is {1, 2} of the other.
    assert (actions[lead < -1e-4] == torch.tensor([2, 1, 0, 3])).all()
    assert (actions[lead > 1e-4] == torch.arange(4)).all()


def test_a_description_keeps_them():
    original = policy([0, 2])
    again = build_policy(describe_policy(original))
    again.load_state_dict(original.state_dict())
    assert torch.equal(again.q_net(games()), original.q_net(games()))
    assert again.sort_axes == [0, 2]


AXES = r"sort_axes must be at least two of the axes 0\.\.2 in ascending"
FLAT = {"space": spaces.Box(-1.0, 1.0, (5,)), "extractor": "flatten"}


@pytest.mark.parametrize(
    ("axes", "arguments", "message"),
    [
        *((axes, {}, AXES) for axes in ([1], [2, 0], [0, 3], [0, 0, 1], [])),
        ([0, 1], {"actions": 3}, "sort_axes needs the host's 4 actions, got 3"),
        ([0, 1], FLAT, "sort_axes: needs a box of points"),
    ],
)
def test_other_axes_actions_and_spaces_are_refused(axes, arguments, message):
    with pytest.raises(ValueError, match=message):
        policy(axes, **arguments)
