"""Features extractors: what they compute, what they ignore, and that SB3 algorithms use them."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from sb3_contrib import QRDQN, MaskablePPO
from stable_baselines3 import DQN, PPO

from sb3_ext.networks.extractors import EXTRACTORS, FlattenExtractor
from sb3_ext.points import point_rows, point_set
from sb3_ext.points.point_inputs import point_features
from sb3_ext.points.point_set import PointSetExtractor


def box(size=6, dimension=3, high=1.0):
    return spaces.Box(-1.0, high, (size, dimension), np.float32)


def agent_space(size=6, dimension=3):
    return spaces.Dict(points=box(size, dimension), coords=spaces.MultiBinary(dimension))


def random_points(counts, size, dimension, seed=0):
    """Float [N, size, dimension] with these numbers of points first, the rest -1."""
    generator = torch.Generator().manual_seed(seed)
    points = torch.randint(0, 21, (len(counts), size, dimension), generator=generator) / 20
    return torch.where(
        torch.arange(size)[:, None] < torch.tensor(counts)[:, None, None], points, -1.0
    )


def test_flatten_a_box():
    extractor = FlattenExtractor(box(2, 3))
    x = torch.arange(12.0).view(2, 2, 3)
    assert extractor.features_dim == 6
    assert extractor(x).tolist() == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]


def test_flatten_a_dict_in_alphabetical_order():
    space = spaces.Dict([("points", box(2, 1)), ("coords", spaces.MultiBinary(3))])
    extractor = FlattenExtractor(space)
    x = {
        "points": torch.tensor([[[8.0], [9.0]]]),
        "coords": torch.tensor([[1, 0, 1]]).to(torch.int8),
    }
    assert extractor.features_dim == 5
    assert extractor(x).tolist() == [[1, 0, 1, 8, 9]]


def test_flatten_with_layers():
    extractor = FlattenExtractor(agent_space(), net_arch=[16, "ln", 4], activation="tanh")
    assert extractor.features_dim == 4
    x = {"points": torch.randn(5, 6, 3), "coords": torch.ones(5, 3)}
    features = extractor(x)
    assert features.shape == (5, 4)
    assert features.min() < 0
    features.sum().backward()
    assert all(parameter.grad is not None for parameter in extractor.parameters())


def test_flatten_discrete_entries_as_one_hot_vectors():
    assert FlattenExtractor(spaces.MultiDiscrete([3, 4])).features_dim == 7
    both = spaces.Dict(a=spaces.Discrete(5), b=spaces.MultiDiscrete([2, 2]))
    assert FlattenExtractor(both, net_arch=[6]).network[0].in_features == 9


def test_flatten_refuses_dicts_inside():
    with pytest.raises(ValueError, match="Dict inside a Dict"):
        FlattenExtractor(spaces.Dict(a=spaces.Dict(b=box())))


def test_names():
    assert set(EXTRACTORS.names()) >= {"flatten", "ordered_points", "point_set"}
    assert EXTRACTORS.resolve("flatten") is FlattenExtractor
    assert EXTRACTORS.resolve("point_set") is PointSetExtractor


def test_point_features_by_hand():
    features = point_features(torch.tensor([[0.0, 1.0, 0.099]]))[0]
    assert features[:3].tolist() == pytest.approx([0.0, 1.0, 0.099])
    # log(0.001) is 0 on the scale, log(0.1) is two thirds, log(1.001) just above 1.
    assert features[3:6].tolist() == pytest.approx([0.0, 1.000145, 2 / 3], abs=1e-6)
    assert features[6:].tolist() == [1.0, 0.0, 0.0]


counts_of_games = st.lists(st.integers(0, 6), min_size=1, max_size=5)


@pytest.mark.parametrize("canonical", [True, False])
@given(
    counts=counts_of_games,
    dimension=st.integers(2, 5),
    second_round=st.booleans(),
    with_coords=st.booleans(),
    seed=st.integers(0, 1000),
)
@settings(deadline=None, max_examples=40)
def test_order_and_padding_do_not_matter(
    canonical, counts, dimension, second_round, with_coords, seed
):
    generator = torch.Generator().manual_seed(seed)
    space = agent_space(6, dimension) if with_coords else box(6, dimension)
    torch.manual_seed(seed)
    extractor = PointSetExtractor(
        space, (8, 8), (8,) if second_round else (), (5,), activation="tanh", canonical=canonical
    )
    points = random_points(counts, 6, dimension, seed)
    coords = torch.randint(0, 2, (len(counts), dimension), generator=generator)

    def features(x):
        return extractor({"points": x, "coords": coords} if with_coords else x)

    # The padding moves about with the points, and there is more of it.
    order = torch.randperm(6, generator=generator)
    padding = torch.full((len(counts), 3, dimension), -1.0)
    expected = features(points)
    for same in (
        points[:, order],
        torch.cat([points, padding], 1),
        torch.cat([padding, points], 1),
    ):
        assert torch.allclose(features(same), expected, atol=1e-5)
    assert torch.isfinite(expected).all()


@pytest.mark.parametrize("canonical", [True, False])
@given(counts=counts_of_games, seed=st.integers(0, 1000), second_round=st.booleans())
@settings(deadline=None, max_examples=40)
def test_packed_and_dense_rows_agree(canonical, counts, seed, second_round):
    """The fast path of the CPU against the one with fixed shapes, in values and in gradients."""
    results = []
    for rows in (point_rows.PackedRows, point_rows.DenseRows):
        torch.manual_seed(seed)
        extractor = PointSetExtractor(
            agent_space(), (8, "ln", 8), (8,) if second_round else (), canonical=canonical
        ).double()
        x = {
            "points": random_points(counts, 6, 3, seed).double(),
            "coords": torch.ones(len(counts), 3),
        }
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(point_set, "PackedRows", rows)
            features = extractor(x)
        features.square().sum().backward()
        results.append([features, *(parameter.grad for parameter in extractor.parameters())])
    for packed, dense in zip(*results, strict=True):
        assert torch.allclose(packed, dense, atol=1e-10)


def test_the_group_maximum_is_the_maximum_and_its_gradient_is_right():
    game = torch.tensor([0, 0, 2, 2, 2])
    rows = torch.randn(5, 3, dtype=torch.double, requires_grad=True)
    highest = point_rows._GroupMaximum.apply(rows, game, 4)
    assert torch.equal(highest[0], rows[:2].amax(0))
    assert torch.equal(highest[2], rows[2:].amax(0))
    assert highest[[1, 3]].eq(0).all()
    assert torch.autograd.gradcheck(lambda x: point_rows._GroupMaximum.apply(x, game, 4), rows)
    tied = torch.tensor([[2.0], [2.0], [1.0]], requires_grad=True)
    point_rows._GroupMaximum.apply(tied, torch.zeros(3, dtype=torch.int64), 1).sum().backward()
    assert tied.grad.tolist() == [[0.5], [0.5], [0.0]]


def test_canonical_sets_are_translated_and_scaled():
    extractor = PointSetExtractor(box(), activation="tanh")
    literal = PointSetExtractor(box(), activation="tanh", canonical=False)
    points = random_points([5, 3, 1], 6, 3)
    absent = points < 0
    moved = torch.where(absent, -1.0, 0.25 * points + torch.tensor([0.5, 0.0, 0.125]))
    assert torch.allclose(extractor(points), extractor(moved), atol=1e-5)
    assert not torch.allclose(literal(points), literal(moved), atol=1e-3)
    # Integers of any size, as an environment without scaled observations gives them.
    large = torch.where(absent, -1.0, 2000 * points)
    assert torch.allclose(extractor(points), extractor(large.long()), atol=1e-5)


def test_what_matters_does_matter():
    torch.manual_seed(0)
    extractor = PointSetExtractor(agent_space(), activation="tanh")
    points = random_points([4], 6, 3)
    base = {"points": points, "coords": torch.tensor([[1, 1, 0]])}
    other_coords = {**base, "coords": torch.tensor([[0, 1, 1]])}
    fewer = points.clone()
    fewer[0, 3] = -1.0
    other_point = points.clone()
    other_point[0, 2, 0] = 1.0 - other_point[0, 2, 0]
    expected = extractor(base)
    for x in (other_coords, {**base, "points": fewer}, {**base, "points": other_point}):
        assert not torch.allclose(extractor(x), expected, atol=1e-4)
    # Equal points change maximum and mean as little as one of them; their number still shows.
    one, two = torch.full((1, 6, 3), -1.0), torch.full((1, 6, 3), -1.0)
    one[0, :1] = two[0, :2] = 0.5
    plain = PointSetExtractor(box(), activation="tanh")
    assert not torch.allclose(plain(one), plain(two), atol=1e-4)


def test_coords_reach_each_point_and_other_entries_only_the_head():
    space = spaces.Dict(points=box(), coords=spaces.MultiBinary(3), to_play=spaces.Discrete(2))
    extractor = PointSetExtractor(space, point_net=(8,), context_net=(), head_net=())
    assert extractor.entries.beside == ("coords",)
    assert extractor.entries.others == ("coords", "to_play")
    assert extractor.features_dim == 8 + 8 + 1 + 3 + 2
    x = {
        "points": random_points([4], 6, 3),
        "coords": torch.tensor([[1.0, 1.0, 0.0]]),
        "to_play": torch.tensor([[0.0, 1.0]]),
    }
    features = extractor(x)[0]
    assert features[16].item() == pytest.approx(np.log(5))
    assert features[17:].tolist() == [1, 1, 0, 0, 1]
    turned = extractor({**x, "coords": torch.tensor([[0.0, 1.0, 1.0]])})[0]
    assert not torch.allclose(turned[:16], features[:16])


@pytest.mark.parametrize("points", [torch.full((3, 6, 3), -1.0), torch.zeros(3, 6, 3)])
@pytest.mark.parametrize("rows", [point_rows.PackedRows, point_rows.DenseRows])
def test_empty_sets_and_equal_points_are_finite(monkeypatch, points, rows):
    monkeypatch.setattr(point_set, "PackedRows", rows)
    extractor = PointSetExtractor(box())
    features = extractor(points)
    assert torch.isfinite(features).all()
    features.sum().backward()
    for parameter in extractor.parameters():
        assert parameter.grad is None or torch.isfinite(parameter.grad).all()


def test_every_parameter_learns():
    extractor = PointSetExtractor(agent_space())
    x = {"points": random_points([6, 4, 2], 6, 3), "coords": torch.ones(3, 3)}
    extractor(x).square().sum().backward()
    for name, parameter in extractor.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_a_compiler_sees_fixed_shapes():
    extractor = PointSetExtractor(box())
    points = random_points([5, 3, 1], 6, 3)
    compiled = torch.compile(extractor, backend="eager", fullgraph=True)
    assert torch.allclose(compiled(points), extractor(points), atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"observation_space": spaces.Box(-1, 1, (6,))}, "needs a Box of shape"),
        ({"observation_space": spaces.Discrete(3)}, "needs a Box of shape"),
        ({"observation_space": spaces.Dict(coords=spaces.MultiBinary(3))}, "entry 'points'"),
        ({"point_net": (8, "b")}, r"point_net: net_arch\[1\] 'b' has BatchNorm"),
        ({"context_net": ("r8",)}, r"context_net: net_arch\[0\] 'r8' has BatchNorm"),
        ({"head_net": ("x",)}, r"net_arch\[0\] must be"),
    ],
    ids=str,
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        PointSetExtractor(**{"observation_space": box(), **arguments})


class NearestPoint(gymnasium.Env):
    """One-step games: name the axis in which the first two points differ least."""

    def __init__(self, as_dict):
        self.observation_space = agent_space(4, 3) if as_dict else box(4, 3)
        self.action_space = spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        points = np.full((4, 3), -1.0, np.float32)
        points[:2] = self.np_random.random((2, 3))
        self.best = int(np.abs(points[0] - points[1]).argmin())
        if isinstance(self.observation_space, spaces.Dict):
            return {"points": points, "coords": np.ones(3, np.int8)}, {}
        return points, {}

    def step(self, action):
        reward = float(action == self.best)
        observation, info = self.reset()
        return observation, reward, True, False, info

    def action_masks(self):
        return np.ones(3, bool)


@pytest.mark.parametrize("as_dict", [False, True])
@pytest.mark.parametrize("name", ["flatten", "point_set"])
@pytest.mark.parametrize("algorithm", [DQN, QRDQN, PPO, MaskablePPO])
def test_stock_algorithms_train_save_and_load_with_it(tmp_path, algorithm, name, as_dict):
    common = {"seed": 0, "device": "cpu", "batch_size": 16}
    if algorithm in (DQN, QRDQN):
        common |= {"learning_starts": 16, "buffer_size": 200, "gradient_steps": 2}
    else:
        common |= {"n_steps": 32, "n_epochs": 2}
    model = algorithm(
        "MultiInputPolicy" if as_dict else "MlpPolicy",
        NearestPoint(as_dict),
        policy_kwargs={
            "features_extractor_class": EXTRACTORS.resolve(name),
            "features_extractor_kwargs": {"activation": "silu"},
            "net_arch": [16],
        },
        **common,
    )
    before = {key: value.clone() for key, value in model.policy.state_dict().items()}
    model.learn(64)
    trained = model.policy.state_dict()
    inside = [key for key in trained if "features_extractor." in key and "weight" in key]
    assert inside or name == "flatten"
    changed = [key for key in inside if not torch.equal(before[key], trained[key])]
    assert changed or name == "flatten"

    model.save(tmp_path / "model.zip")
    loaded = algorithm.load(tmp_path / "model.zip", device="cpu")
    observation, _ = NearestPoint(as_dict).reset(seed=3)
    assert (
        loaded.predict(observation, deterministic=True)[0]
        == (model.predict(observation, deterministic=True)[0])
    )
    assert isinstance(
        loaded.policy.q_net.features_extractor
        if algorithm is DQN
        else loaded.policy.quantile_net.features_extractor
        if algorithm is QRDQN
        else loaded.policy.features_extractor,
        EXTRACTORS.resolve(name),
    )
