"""Points after each move, against the reference of the rule."""

from __future__ import annotations

from itertools import combinations

import pytest
import torch

from sb3_ext.points.point_moves import after_moves, axis_sums, covered_after, moves


def test_sums_over_all_sets_of_axes():
    sums = axis_sums(torch.tensor([1.0, 10.0, 100.0]))
    assert sums.tolist() == [1.0, 10.0, 11.0, 100.0, 101.0, 110.0, 111.0]


def test_the_moves_in_three_axes():
    table = moves(3, torch.device("cpu"))
    assert table.sets.tolist() == [2, 2, 4, 4, 5, 5, 6, 6, 6]
    assert table.axes.tolist() == [0, 1, 0, 2, 1, 2, 0, 1, 2]


@pytest.mark.parametrize("dimension", [2, 3, 4])
def test_points_and_covering_are_those_of_the_rule(dimension):
    source = torch.Generator().manual_seed(dimension)
    games = torch.randint(0, 4, (60, 6, dimension), generator=source)
    sets = [s for n in range(2, dimension + 1) for s in combinations(range(dimension), n)]
    sets.sort(key=lambda axes: sum(2**axis for axis in axes))
    pairs = [(axes, axis) for axes in sets for axis in axes]
    for game in games.tolist():
        points = torch.tensor(game, dtype=torch.float32)
        after = after_moves(points)
        sums = axis_sums((points[:, None] - points[None]).flatten(0, 1))
        covered = covered_after(sums, dimension).view(6, 6, -1)
        assert after.shape == (6, len(pairs), dimension)
        for number, (axes, axis) in enumerate(pairs):
            moved = [
                tuple(sum(p[k] for k in axes) if j == axis else p[j] for j in range(dimension))
                for p in game
            ]
            assert after[:, number].tolist() == [list(map(float, p)) for p in moved]
            expected = [
                [q != p and all(a <= b for a, b in zip(q, p, strict=True)) for q in moved]
                for p in moved
            ]
            assert (covered[:, :, number] > 0).tolist() == expected
