"""Sizes and options of a game, the numbers of axis sets, and how starts are drawn."""

from fractions import Fraction

import numpy as np
import pytest
import torch

from resgym.game.rng import RowRandom
from resgym.game.rules import random_starts
from resgym.game.spec import (
    GameSpec,
    action_axes,
    coords_to_action,
    host_action_table,
)
from tests.reference import rule
from tests.resgym.game.lockstep import reference_start


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("dimension", 1, "between 2 and 10"),
        ("dimension", 11, "between 2 and 10"),
        ("max_num_points", 0, "between 1 and 1024"),
        ("max_num_points", 1025, "between 1 and 1024"),
        ("max_value", 0, "between 1 and 2147483646"),
        ("max_value", 2**31, "between 1 and 2147483646"),
        ("polytope", "hull", r"\['dominance', 'newton'\]"),
        ("rule", "hauser", r"'thom'\] or of a module imported before"),
        ("unit", 2, "1 with rule 'basic'"),
        ("unit", 0, "between 1 and 2147483646"),
        *(
            (name, value, None)
            for name in ("dimension", "reposition")
            for value in (3.0, "3", None)
        ),
        *((name, True, None) for name in ("dimension", "max_num_points", "max_value")),
    ],
)
def test_impossible_values_and_types_are_refused(field, value, allowed):
    error = ValueError if allowed else TypeError
    with pytest.raises(error, match=rf"^{field} must be .*{allowed or ''}, got {value!r}"):
        GameSpec(**{field: value})


def test_integers_of_numpy_are_integers():
    spec = GameSpec(dimension=np.int32(4), max_num_points=np.int64(7), max_value=np.uint8(9))
    assert (spec.dimension, spec.max_num_points, spec.max_value) == (4, 7, 9)
    assert all(type(value) is int for value in (spec.dimension, spec.max_num_points))


@pytest.mark.parametrize("dimension", range(2, 11))
def test_sets_are_numbered_as_in_the_reference_both_ways(dimension):
    table = host_action_table(dimension)
    assert table.dtype == torch.bool
    sets = [tuple(row.nonzero()[:, 0].tolist()) for row in table]
    assert list(action_axes(dimension)) == sets == rule.host_actions(dimension)
    for kind in (torch.bool, torch.int8):
        assert torch.equal(coords_to_action(table.to(kind)), torch.arange(len(table)))
    small = torch.cat([torch.eye(dimension), torch.zeros(1, dimension)]).to(torch.bool)
    assert coords_to_action(small).tolist() == [-1] * (dimension + 1)


def test_the_fixed_start_takes_over_when_every_draw_is_finished(monkeypatch):
    monkeypatch.setattr(GameSpec, "start_attempts", property(lambda self: 2))
    spec = GameSpec(3, 2, 1)
    keys = range(200)
    starts = random_starts(spec, RowRandom(torch.tensor(keys))).point_lists()
    assert starts == [reference_start(spec, key)[0] for key in keys]
    assert starts.count([(1, 0, 0), (0, 1, 0)]) > 20


def finished_bound(spec):
    """P[some point is <= all others] is at most P * (E over v of ((V - v)/V)^(P-1))^D."""
    values = spec.max_value + 1
    others = spec.max_num_points - 1
    axis = sum(Fraction(values - v, values) ** others for v in range(values)) / values
    return spec.max_num_points * axis**spec.dimension


@pytest.mark.parametrize("sizes", [(3, 20, 20), (2, 5, 3), (3, 2, 20), (10, 50, 100), (2, 3, 9)])
def test_start_attempts_are_the_least_that_make_the_fixed_start_impossible(sizes):
    spec = GameSpec(*sizes)
    bound = finished_bound(spec)
    attempts = spec.start_attempts
    if bound < Fraction(9, 10):
        assert bound**attempts < Fraction(1, 10**12) or attempts == 256
        assert attempts == 1 or bound ** (attempts - 1) >= Fraction(1, 10**12)
    else:
        assert attempts == 256
