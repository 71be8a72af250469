"""The net_arch language, and networks that take games with other names of axes for one."""

from itertools import permutations

import pytest
import torch
from gymnasium import spaces
from torch import nn

from resgym.game.spec import host_action_table
from sb3_ext.checkpoints.policy_description import build_policy, describe_policy
from sb3_ext.ddqn import QPolicy
from sb3_ext.networks.mlp import ACTIVATIONS, ResidualBlock, build_mlp


def policy(sort_axes=True, space=None, actions=4, **arguments):
    torch.manual_seed(3)
    return QPolicy(
        spaces.Box(-1.0, 1.0, (5, 3)) if space is None else space,
        spaces.Discrete(actions),
        lambda _: 1e-3,
        **{"net_arch": [16], "extractor": "point_set", "sort_axes": sort_axes, **arguments},
    )


def games(dimension=3, number=400):
    """Points in order, some rows absent, no two axes with equal sums after a shift to the axes."""
    source = torch.Generator().manual_seed(1)
    points = torch.randint(0, 60, (number, 5, dimension), generator=source) / 60.0
    absent = torch.arange(5) >= torch.randint(2, 6, (number, 1), generator=source)
    absent = absent[:, :, None]
    lowest = points.masked_fill(absent, torch.inf).amin(1, keepdim=True)
    sums = (points - lowest).masked_fill(absent, 0.0).sum(1).sort(1).values
    clear = (sums[:, 1:] > sums[:, :-1] + 1e-3).all(1)
    return renamed(points.masked_fill(absent, -1.0)[clear], range(dimension))


def renamed(points, axes):
    """The games with old axes in a new order, rows ordered by Python's own sorting."""
    rows = [
        sorted(([x[old] for old in axes] for x in game), reverse=True) for game in points.tolist()
    ]
    return torch.tensor(rows)


@pytest.mark.parametrize("extractor", ["point_set", "point_pairs"])
@pytest.mark.parametrize("dimension", [2, 3, 4])
def test_games_with_other_names_of_axes_have_the_same_values(extractor, dimension):
    table = host_action_table(dimension)
    number = {tuple(row.nonzero()[:, 0].tolist()): action for action, row in enumerate(table)}
    space, points = spaces.Box(-1.0, 1.0, (5, dimension)), games(dimension)
    every = list(range(dimension))
    network = policy(True, space, len(table), extractor=extractor).q_net
    plain = policy(False, space, len(table), extractor=extractor).q_net
    values = network(points)
    differs = False
    for axes in permutations(every):
        # The new axis j is the old axis axes[j], so a set of new axes is one of old ones.
        old = [number[tuple(sorted(axes[axis] for axis in each))] for each in number]
        image = renamed(points, axes)
        assert torch.allclose(network(image), values[:, old], atol=1e-5)
        differs |= not torch.allclose(plain(image), plain(points)[:, old], atol=1e-5)
        # The network itself sees the order whose sums descend.
        seen = image - image.masked_fill(image < 0, torch.inf).amin(1, keepdim=True)
        sums = seen.masked_fill(image < 0, 0.0).sum(1)
        ready = (sums[:, :-1] > sums[:, 1:] + 1e-4).all(1)
        assert ready.any()
        assert torch.allclose(network(image)[ready], plain(image)[ready], atol=1e-6)
    assert differs


def test_a_description_keeps_them():
    original = policy()
    again = build_policy(describe_policy(original))
    again.load_state_dict(original.state_dict())
    assert torch.equal(again.q_net(games()), original.q_net(games()))
    assert again.sort_axes is True


def test_a_short_description_makes_no_large_network():
    for field, kind in (
        ("observation", "MultiBinary"),
        ("observation", "Box"),
        ("action", "Discrete"),
    ):
        description = describe_policy(policy(sort_axes=False, extractor="flatten"))
        description[f"{field}_space"] |= {
            "type": kind,
            "low": 0,
            "high": 1,
            "n": 2**40,
            "shape": [2**40],
        }
        with pytest.raises(ValueError, match=r"at most (268435456 weights|1048576 numbers)"):
            build_policy(description)


def test_what_cannot_be_sorted_is_refused():
    with pytest.raises(ValueError, match="sort_axes needs the host's 4 actions, got 3"):
        policy(actions=3)
    points = spaces.Box(-1.0, 1.0, (5, 3))
    masked = spaces.Dict({"action_mask": spaces.MultiBinary(4), "points": points})
    for space, extractor in ((points, "flatten"), (masked, "point_set")):
        with pytest.raises(ValueError, match=r"sort_axes: needs points alone .* got \w+Extractor"):
            policy(space=space, extractor=extractor)


@pytest.mark.parametrize(
    ("net_arch", "names"),
    [
        ([], []),
        ([8, "b"], ["Linear", "BatchNorm1d", "ReLU"]),
        (["r8", 4], ["ResidualBlock", "Linear", "ReLU"]),
        (
            [{"repeat": 2, "net_arch": [{"repeat": 2, "net_arch": [8]}, "ln"]}, 4],
            [*(2 * ["Linear", "ReLU", "Linear", "LayerNorm", "ReLU"]), "Linear", "ReLU"],
        ),
    ],
    ids=str,
)
def test_layers_in_their_order(net_arch, names):
    body = build_mlp(5, net_arch)
    assert [type(layer).__name__ for layer in body] == names
    assert body(torch.randn(7, 5)).shape == (7, body.output_dim)


def test_residual_block_by_its_formula():
    block = ResidualBlock(3, 5, nn.ReLU).eval()
    x = torch.randn(4, 3)
    assert torch.allclose(block(x), (block.skip(x) + block.body(x)).relu())
    assert isinstance(block.skip, nn.Linear)
    names = [type(layer).__name__ for layer in block.body]
    assert names == ["Linear", "BatchNorm1d", "ReLU", "Linear", "BatchNorm1d"]
    same = ResidualBlock(5, 5, nn.ReLU).eval()
    assert isinstance(same.skip, nn.Identity)
    with torch.no_grad():
        for parameter in same.body.parameters():
            parameter.zero_()
    x = torch.rand(4, 5)
    assert torch.equal(same(x), x)


def test_activations_by_name_or_class():
    for name in ACTIVATIONS:
        kind = ACTIVATIONS.resolve(name)
        for activation in (name, kind):
            assert type(build_mlp(2, [3], activation=activation)[1]) is kind
    assert isinstance(build_mlp(2, ["r3"], activation="tanh")[0].activation, nn.Tanh)
    with pytest.raises(ValueError, match=r"'rely'.*'relu'"):
        build_mlp(3, [3], "rely")
