"""The extractor that compares points two by two."""

from __future__ import annotations

import math

import pytest
import torch
from gymnasium import spaces

from sb3_ext.points.point_inputs import axis_sums, pair_features
from sb3_ext.points.point_pairs import PointPairsExtractor
from sb3_ext.points.point_rows import DenseRows, GroupedRows

BOX = spaces.Box(-1.0, 1.0, (7, 3))
AGENT = spaces.Dict({"points": BOX, "coords": spaces.MultiBinary(3)})


def games(counts, rows=7, seed=0):
    source = torch.Generator().manual_seed(seed)
    points = torch.rand(len(counts), rows, 3, generator=source)
    absent = torch.arange(rows) >= torch.tensor(counts)[:, None]
    return points.masked_fill(absent[:, :, None], -1.0)


@pytest.fixture
def extractor():
    torch.manual_seed(0)
    return PointPairsExtractor(BOX)


def test_sums_over_all_sets_of_axes():
    sums = axis_sums(torch.tensor([1.0, 10.0, 100.0]))
    assert sums.tolist() == [1.0, 10.0, 11.0, 100.0, 101.0, 110.0, 111.0]


def test_features_of_a_pair_by_hand():
    sums, sign, size = pair_features(axis_sums(torch.tensor([[0.5, -0.5]]))).view(3, 3)
    assert sums.tolist() == [0.5, -0.5, 0.0]
    assert sign.tolist() == [1.0, -1.0, 0.0]
    expected = math.log(0.501) / math.log(1000.0) + 1.0
    assert size.tolist() == pytest.approx([expected, -expected, 0.0])
    # Rounding is no difference.
    assert pair_features(axis_sums(torch.tensor([[1e-7, 0.0]]))).tolist() == [[0.0] * 9]


def test_order_padding_and_gaps_have_no_influence(extractor):
    points = games([5, 3, 7, 2, 1])
    expected = extractor(points)
    order = torch.stack([torch.randperm(7) for _ in range(5)])
    shuffled = points.gather(1, order[:, :, None].expand_as(points))  # absent rows in between
    torch.testing.assert_close(extractor(shuffled), expected)
    padded = torch.nn.functional.pad(points, (0, 0, 0, 6), value=-1.0)
    torch.testing.assert_close(extractor(padded), expected)
    torch.testing.assert_close(extractor(points[2:4]), expected[2:4])


def test_position_and_scale_have_no_influence(extractor):
    points = games([4, 3])
    present = points[:, :, :1] >= 0
    moved = torch.where(present, points * 0.5 + torch.tensor([0.1, 0.2, 0.3]), points)
    torch.testing.assert_close(extractor(moved), extractor(points), rtol=1e-3, atol=1e-4)


def test_every_point_and_axis_has_influence(extractor):
    points = games([4])
    expected = extractor(points)
    for row in range(4):
        for axis in range(3):
            changed = points.clone()
            changed[0, row, axis] = changed[0, row, axis] * 0.7 + 0.01
            assert not torch.allclose(extractor(changed), expected, atol=1e-4)


@pytest.mark.parametrize("counts", [[5, 3, 7, 2, 1, 2], [1, 1], [4], [0, 2]])
def test_fixed_shapes_give_the_same_features_and_gradients(extractor, counts, monkeypatch):
    points = games(counts)
    weights = torch.randn(len(counts), extractor.features_dim)

    def run():
        extractor.zero_grad()
        features = extractor(points)
        (features * weights).sum().backward()
        parameters = list(extractor.parameters())
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in parameters]
        return features.detach(), gradients

    features, gradients = run()
    made = []

    def dense(*arguments):
        made.append(DenseRows(*arguments))
        return made[-1]

    monkeypatch.setattr("sb3_ext.points.point_pairs.GroupedRows", dense)
    dense_features, dense_gradients = run()
    assert made
    torch.testing.assert_close(dense_features, features, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(dense_gradients, gradients, rtol=1e-3, atol=1e-4)


def test_only_present_points_and_pairs_are_computed():
    points = games([5, 3, 2])
    rows = GroupedRows(points, points[:, :, 0] >= 0)
    assert rows.points.shape == (10, 3)
    assert rows.pairs.shape == (5 * 4 + 3 * 2 + 2 * 1, 3)


def test_no_games_have_no_features(extractor):
    assert extractor(games([3])[:0]).shape == (0, extractor.features_dim)


def test_the_axes_of_the_host_reach_every_point():
    torch.manual_seed(0)
    extractor = PointPairsExtractor(AGENT, head_net=[8])
    points = games([4, 4])
    points[1] = points[0]
    first = {"points": points, "coords": torch.tensor([[1, 1, 0], [0, 1, 1]])}
    features = extractor(first)
    assert not torch.allclose(features[0], features[1])
    assert extractor.encoder[0].in_features == 12


def test_other_spaces_and_batch_norm_are_refused():
    with pytest.raises(ValueError, match="point_pairs needs a Box of shape"):
        PointPairsExtractor(spaces.Discrete(3))
    for name in ("point_net", "pair_net", "context_net"):
        with pytest.raises(ValueError, match=f"{name}.*BatchNorm"):
            PointPairsExtractor(BOX, **{name: [8, "b"]})
    PointPairsExtractor(BOX, head_net=[8, "b"])
