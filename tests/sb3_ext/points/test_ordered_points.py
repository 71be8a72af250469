"""The extractor that reads points in their order, by hand and by what must not change it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from gymnasium import spaces

from sb3_ext.networks.extractors import EXTRACTORS
from sb3_ext.points.ordered_points import OrderedPointsExtractor
from sb3_ext.points.point_inputs import point_features

BOX = spaces.Box(-1.0, 1.0, (3, 2), np.float32)
DICT = spaces.Dict(points=BOX, coords=spaces.MultiBinary(2))


def points(*rows) -> torch.Tensor:
    return torch.tensor([[*rows, *[(-1.0, -1.0)] * (3 - len(rows))]])


def test_by_hand():
    """Moved to the axes (0.4, 0) and (0, 0.2), with largest entry 1: (1, 0) and (0, 0.5)."""
    extractor = EXTRACTORS.resolve("ordered_points")(BOX)
    assert extractor.features_dim == 3 * 9
    found = extractor(points((0.9, 0.5), (0.5, 0.7)))[0].view(3, 9)
    half = 1 + math.log(0.5 + 1e-3) / -math.log(1e-3)
    one = 1 + math.log(1 + 1e-3) / -math.log(1e-3)
    expected = torch.tensor(
        [
            [0.9, 0.5, 1.0, 0.0, one, 0.0, 0.0, 1.0, 1.0],
            [0.5, 0.7, 0.0, 0.5, 0.0, half, 1.0, 0.0, 1.0],
            [0.0] * 9,
        ]
    )
    assert torch.allclose(found, expected, atol=1e-6)
    assert torch.allclose(found[0, 2:8], point_features(torch.tensor([1.0, 0.0])), atol=1e-6)


def test_order_and_place_are_seen():
    extractor = OrderedPointsExtractor(BOX)
    first, second = (0.75, 0.5), (0.5, 1.0)
    assert not torch.equal(extractor(points(first, second)), extractor(points(second, first)))
    moved = [tuple(x - 0.25 for x in point) for point in (first, second)]
    here, there = (extractor(points(*each))[0].view(3, 9) for each in ((first, second), moved))
    assert torch.equal(here[:, 2:], there[:, 2:])
    assert not torch.equal(here[:, :2], there[:, :2])


def test_coords_follow_and_few_rows_are_read():
    extractor = OrderedPointsExtractor(DICT, rows=1)
    assert extractor.features_dim == 9 + 2
    observation = {"points": points((0.9, 0.5), (0.5, 0.7)), "coords": torch.tensor([[1, 0]])}
    found = extractor(observation)[0]
    assert found[-2:].tolist() == [1.0, 0.0]
    whole = OrderedPointsExtractor(DICT)(observation)[0]
    assert torch.equal(found[:9], whole[:9])


def test_one_point_and_none_are_finite():
    extractor = OrderedPointsExtractor(BOX)
    for rows in ([], [(0.0, 0.0)], [(1.0, 1.0)]):
        assert extractor(points(*rows)).isfinite().all()


@pytest.mark.parametrize("rows", [0, 4, True, 1.5])
def test_bad_rows(rows):
    with pytest.raises(ValueError, match=r"rows must be in 1\.\.3"):
        OrderedPointsExtractor(BOX, rows=rows)


def test_bad_space():
    with pytest.raises(ValueError, match="ordered_points needs a Box of shape"):
        OrderedPointsExtractor(spaces.Box(0, 1, (3,)))
