"""The extractors that know the points: what they compute, and what they ignore."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.utils import ConstantSchedule

from resgym import GameSpec, functional
from resgym.game.spec import coords_to_action, host_action_table
from sb3_ext.ddqn.policies import PointsPolicy
from sb3_ext.networks import rows
from sb3_ext.networks.any_size import AnySizeExtractor
from sb3_ext.networks.extractors import (
    FlattenExtractor,
    OrderedPointsExtractor,
    PointPairsExtractor,
    PointSetExtractor,
)
from sb3_ext.networks.mlp import action_scores
from sb3_ext.networks.rows import axis_sums, quotient_features


def box(size=6, dimension=3):
    return spaces.Box(-1.0, 1.0, (size, dimension), np.float32)


def agent_space(size=6, dimension=3):
    return spaces.Dict(points=box(size, dimension), coords=spaces.MultiBinary(dimension))


def random_points(counts, size=6, dimension=3, seed=0):
    """Float [N, size, dimension] with these numbers of points first, the rest -1."""
    generator = torch.Generator().manual_seed(seed)
    points = torch.randint(0, 21, (len(counts), size, dimension), generator=generator) / 20
    return torch.where(
        torch.arange(size)[:, None] < torch.tensor(counts)[:, None, None], points, -1.0
    )


# Extractors that pool over the points, small, from a space.
POOLING = {
    "set": lambda space: PointSetExtractor(space, (8, 8), (8,), (5,), activation="tanh"),
    "set, one round": lambda space: PointSetExtractor(space, (8, 8), (), (5,), activation="tanh"),
    "pairs": lambda space: PointPairsExtractor(space, (8,), (8,), (8,), (5,), activation="tanh"),
    "pairs, quotients": lambda space: PointPairsExtractor(
        space, (8,), (8,), (8,), (5,), activation="tanh", quotients=True
    ),
    "any size": lambda space: AnySizeExtractor(space, 8, 5),
}
pooling = pytest.mark.parametrize("make", POOLING.values(), ids=POOLING)


def quotients_of(a, b):
    """The partial quotients of a / b in whole numbers, the larger over the smaller first."""
    larger = max(a, b)
    smaller = min(a, b)
    found = []
    while smaller:
        found.append(larger // smaller)
        larger, smaller = smaller, larger % smaller
    return found


@given(
    difference=st.lists(st.integers(-50, 50), min_size=3, max_size=3).filter(any),
    scale=st.sampled_from([50, 64, 97]),
)
@settings(deadline=None, max_examples=100)
def test_quotients_are_those_of_euclids_algorithm(difference, scale):
    x = dict(enumerate(difference))
    games = []  # by the number of the sum, as `axis_sums`; two single axes once
    for number in range(1, 8):
        axes = [axis for axis in x if number >> axis & 1]
        single = number.bit_count() == 1
        games += [(sum(x[k] for k in axes), x[j]) for j in x if not single or j > axes[0]]
    found = quotient_features(axis_sums(torch.tensor([difference]) / scale)).view(2, len(games))
    for (a, b), moves, first in zip(
        games, (10 * found[0]).tolist(), (5 * found[1]).tolist(), strict=True
    ):
        exact = quotients_of(abs(a), abs(b)) if a * b < 0 else []
        if all(each <= 40 for each in exact):
            assert moves == pytest.approx(sum(exact[:7]), abs=1e-3)
            assert first == pytest.approx(exact[0] if exact else 0, abs=1e-3)


@pooling
@given(
    counts=st.lists(st.integers(0, 6), min_size=1, max_size=5),
    dimension=st.integers(2, 5),
    with_coords=st.booleans(),
    seed=st.integers(0, 1000),
)
@settings(deadline=None, max_examples=15)
def test_order_and_padding_do_not_matter(make, counts, dimension, with_coords, seed):
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    extractor = make(agent_space(6, dimension) if with_coords else box(6, dimension))
    points = random_points(counts, 6, dimension, seed)
    coords = torch.randint(0, 2, (len(counts), dimension), generator=generator)

    def features(x):
        return extractor({"points": x, "coords": coords[: len(x)]} if with_coords else x)

    # The padding moves about with the points, and there is more of it.
    orders = torch.rand(points.shape[:2], generator=generator).argsort(1)
    shuffled = points.gather(1, orders[:, :, None].expand_as(points))
    padding = torch.full((len(counts), 3, dimension), -1.0)
    expected = features(points)
    assert torch.isfinite(expected).all()
    for same in (shuffled, torch.cat([points, padding], 1), torch.cat([padding, points], 1)):
        assert torch.allclose(features(same), expected, atol=1e-5)
    assert torch.allclose(features(points[:1]), expected[:1], atol=1e-5)  # nor other games


def features_and_gradients(make, points, seed):
    """Of an extractor with weights of this seed and of the points' precision."""
    torch.manual_seed(seed)
    extractor = make(agent_space(*points.shape[1:])).to(points.dtype)
    coords = torch.ones(len(points), points.shape[2])
    features = extractor({"points": points, "coords": coords})
    features.square().sum().backward()
    return [features, *(p.grad if p.grad is not None else p * 0 for p in extractor.parameters())]


@pooling
@given(
    counts=st.lists(st.integers(0, 9), min_size=1, max_size=20),
    dimension=st.integers(2, 5),
    seed=st.integers(0, 1000),
    equal=st.booleans(),
    turned=st.booleans(),
)
@settings(deadline=None, max_examples=15)
def test_all_three_ways_give_the_same_features_and_gradients(
    make, counts, dimension, seed, equal, turned
):
    """Compiled loops, the same without, and rows of fixed shape as accelerators have them.

    Rows that tie for a maximum, games without a point and gaps between points among them.
    """
    points = random_points(counts, 9, dimension, seed)
    points = points.clamp(max=0.0) if equal else points
    points = points.flip(1).contiguous() if turned else points
    quick = features_and_gradients(make, points, seed)
    packed = features_and_gradients(make, points.double(), seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "shapes_are_fixed", lambda points: True)
        fixed = features_and_gradients(make, points.double(), seed)
    for one, other, third in zip(quick, packed, fixed, strict=True):
        assert torch.isfinite(third).all()
        assert torch.allclose(other, third, atol=1e-10)
        assert torch.allclose(one.double(), other, rtol=1e-3, atol=1e-3)


@pooling
def test_a_compiler_sees_fixed_shapes_and_no_games_have_no_features(make):
    extractor = make(box())
    points = random_points([5, 3, 1])
    compiled = torch.compile(extractor, backend="eager", fullgraph=True)
    assert torch.allclose(compiled(points), extractor(points), atol=1e-5)
    none = extractor(points[:0])
    assert (len(none), none.shape[-1]) == (0, 5)
    if make is not POOLING["any size"]:
        traced = torch.jit.trace(extractor, points)
        others = random_points([2, 6])
        assert torch.allclose(traced(others), extractor(others), atol=1e-5)


@pytest.mark.parametrize("name", ["set", "pairs", "any size"])
def test_position_and_scale_do_not_matter(name):
    extractor = POOLING[name](box())
    literal = OrderedPointsExtractor(box())
    points = random_points([5, 3, 1])
    absent = points < 0
    moved = torch.where(absent, -1.0, 0.25 * points + torch.tensor([0.5, 0.0, 0.125]))
    assert torch.allclose(extractor(points), extractor(moved), rtol=1e-3, atol=1e-4)
    assert not torch.allclose(literal(points), literal(moved), atol=1e-3)
    # Integers of any size, as an environment without scaled observations gives them.
    large = torch.where(absent, -1.0, 2000 * points)
    assert torch.allclose(extractor(points), extractor(large.long()), rtol=1e-3, atol=1e-4)


@pooling
def test_every_point_axis_and_parameter_matters(make):
    torch.manual_seed(0)
    extractor = make(agent_space())
    points = random_points([4], seed=1)
    base = {"points": points, "coords": torch.tensor([[1, 1, 0]])}
    fewer = points.clone()
    fewer[0, 3] = -1.0
    others = [{**base, "coords": torch.tensor([[0, 1, 1]])}, {**base, "points": fewer}]
    for row in range(4):
        for axis in range(3):
            changed = points.clone()
            changed[0, row, axis] = changed[0, row, axis] * 0.7 + 0.01
            others.append({**base, "points": changed})
    # Equal points change maximum and mean as little as one of them; their number still shows.
    absent = torch.arange(6)[:, None] >= torch.tensor([1, 2])[:, None, None]
    equal = torch.full((2, 6, 3), 0.5).masked_fill(absent, -1.0)
    one, two = extractor({"points": equal, "coords": base["coords"].expand(2, 3)})
    assert not torch.allclose(one, two, atol=1e-4)
    expected = extractor(base)
    for other in others:
        assert not torch.allclose(extractor(other), expected, atol=1e-5)
    expected.square().sum().backward()
    for name, parameter in extractor.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_flatten_a_dict_in_alphabetical_order():
    space = spaces.Dict([("points", box(2, 1)), ("coords", spaces.MultiBinary(3))])
    extractor = FlattenExtractor(space)
    x = {
        "points": torch.tensor([[[8.0], [9.0]]]),
        "coords": torch.tensor([[1, 0, 1]]).to(torch.int8),
    }
    assert extractor.features_dim == 5
    assert extractor(x).tolist() == [[1, 0, 1, 8, 9]]
    one_hot = spaces.Dict(a=spaces.Discrete(5), b=spaces.MultiDiscrete([2, 2]))
    assert FlattenExtractor(one_hot).features_dim == 9


SIZES = [(2, 20, 20), (3, 20, 20), (4, 5, 4), (5, 4, 3), (6, 4, 3)]


@pytest.fixture(scope="module", params=["host", "agent"])
def policy(request):
    """One network with weights of any kind, made for three axes and five points."""
    points = spaces.Box(-1.0, 20.0, (5, 3))
    torch.manual_seed(0)
    host = request.param == "host"
    space = points if host else spaces.Dict(points=points, coords=spaces.MultiBinary(3))
    return PointsPolicy(
        space,
        spaces.Discrete(4 if host else 3),
        ConstantSchedule(0.0),
        extractor="any_size",
        features_extractor_kwargs={"pair_width": 16, "width": 24},
        net_arch=[16],
    )


@pytest.mark.parametrize(("dimension", "points", "value"), SIZES)
def test_scores_follow_the_names_of_axes_and_points_exactly(policy, dimension, points, value):
    state = functional.starts(GameSpec(dimension, points, max_value=value), 64, seed=1)
    seen = functional.observe(state, scale=False)
    sets = host_action_table(dimension)
    generator = torch.Generator().manual_seed(dimension)
    given = sets[torch.randint(len(sets), (64,), generator=generator)]
    axes, rows = (torch.randperm(n, generator=generator) for n in (dimension, points))

    def scores(x, coords):
        is_host = isinstance(policy.observation_space, spaces.Box)
        return action_scores(policy, x if is_host else {"points": x, "coords": coords})

    found = scores(seen, given)
    renamed = scores(seen[:, rows][:, :, axes], given[:, axes])
    if found.shape[1] == dimension:
        expected = found[:, axes]
    else:  # the new axis j is the old axis axes[j]
        old = torch.zeros_like(sets)
        old[:, axes] = sets
        expected = found[:, coords_to_action(old)]
    assert found.std() > 0
    assert torch.equal(renamed, expected)


def test_a_policy_of_another_kind_is_refused():
    with pytest.raises(TypeError, match=r"MaskablePPO in PyTorch, got .*SimpleNamespace"):
        action_scores(SimpleNamespace(training=False, set_training_mode=bool), None)


def test_actions_valued_one_by_one_have_no_dueling_heads(policy):
    spaces_of = policy.observation_space, policy.action_space
    with pytest.raises(ValueError, match="dueling: got true"):
        PointsPolicy(*spaces_of, ConstantSchedule(0.0), extractor="any_size", dueling=True)
