"""The data of the benchmark: as published, apart from training, as the reference solves it."""

import numpy as np
import pytest
import torch

from resgym.benchmark import Solved, load
from resgym.benchmark.solved import GAMES, PACKAGED
from resgym.game.spec import action_axes
from resgym.solver.labels import digests
from tests.reference.depth import Depth
from tests.reference.rule import move

SPLIT = [part for part in GAMES if part not in ("scale-100", "family")]


@pytest.mark.parametrize("part", GAMES)
def test_test_positions_come_with_the_package(part):
    data, spec = load(part), GAMES[part]
    assert 400 <= len(data) <= 5500
    assert data.points.shape[2] == spec.dimension
    assert int(data.count.min()) >= 2
    assert int(data.count.max()) <= spec.max_num_points
    inside = data.after >= 0
    for action, axes in enumerate(action_axes(spec.dimension)):
        assert inside[:, action].all(0).tolist() == [a in axes for a in range(spec.dimension)]
    assert torch.equal(data.costs, 1 + data.after.amax(2))
    assert int(data.value.min()) >= 1
    forms = digests(data.points.numpy(), data.count.numpy())
    assert len(np.unique(forms, axis=0)) == len(data)
    if part in SPLIT:  # so a player that is taught other splits has met none of them
        assert ((forms[:, 1].view(np.uint64) >> 11) * 2.0**-53 < 0.05).all()


@pytest.mark.parametrize(
    ("part", "number"),
    [(part, 3) for part in ("worst-5", "worst-20", "moves-20", "axes4")]
    + [
        pytest.param(part, number, marks=pytest.mark.long)
        for part, number in {
            **{"worst-5": 200, "worst-20": 160, "moves-20": 100, "family": 40},  # 500, 135 s
            "axes4": 20,
        }.items()
    ],
)
def test_the_reference_finds_the_same_costs(part, number):
    """A solver written apart, in plain Python."""
    data, reference = load(part), Depth()
    order = torch.arange(len(data))
    if number <= 20:  # those of fewest moves, which take little time
        order = data.value.argsort(stable=True)[:: 1 if number == 3 else 5]
    for row in order[:number].tolist():
        points = sorted(map(tuple, data.points[row, : data.count[row]].tolist()), reverse=True)
        for axes, found in zip(action_axes(data.points.shape[2]), data.after[row], strict=True):
            for axis in axes:
                assert reference.value(move(points, axes, axis)) == found[axis], (row, axes, axis)


def test_what_is_missing_or_another_is_one_line(tmp_path):
    with pytest.raises(ValueError, match=r"data: .*solved-0\.npz"):
        load("worst-5", "train", str(tmp_path))
    Solved.load(PACKAGED / "worst-5.npz").save(tmp_path / "solved-0.npz")
    with pytest.raises(ValueError, match="is not that of solved-v1, worst-5"):
        load("worst-5", "validation", str(tmp_path))
