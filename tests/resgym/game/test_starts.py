"""Random starts, drawn here once more in plain Python."""

import torch

from resgym.game.rng import RowRandom
from resgym.game.rules import random_starts
from resgym.game.spec import GameSpec
from tests.resgym.game.lockstep import reference_start


def test_the_fixed_start_takes_over_when_every_draw_is_finished(monkeypatch):
    monkeypatch.setattr(GameSpec, "start_attempts", property(lambda self: 2))
    spec = GameSpec(3, 2, 1)
    keys = list(range(200))
    starts = random_starts(spec, RowRandom(torch.tensor(keys)))
    expected = [reference_start(spec, key) for key in keys]
    assert starts.point_lists() == [points for points, _ in expected]
    fixed = [(1, 0, 0), (0, 1, 0)]
    assert sum(points == fixed for points in starts.point_lists()) > 20
