"""Labels of the compiled search against exhaustive search and the solver, move by move."""

from __future__ import annotations

import random

import numpy as np
import pytest

from resgym.game.actions import action_axes
from resgym.game.plain import canonical, moved, prune
from resgym.polynomials.singularities import random_family
from resgym.solver import kernels
from resgym.solver.labels import Labeller
from resgym.solver.search import Search
from resgym.solver.solve import solve
from tests.resgym.solver.positions import OBJECTIVES, batch, drawn

pytest.importorskip("numba")


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_both_seats_against_the_solver(objective):
    positions = [tuple(prune(random_family("random(points=5,max=4,dim=3)", k))) for k in range(12)]
    labeller = Labeller(3, 5, objective)
    labels = labeller.host(*batch(positions, 5))
    assert labels.solved.all()
    (_, move, total), single = OBJECTIVES[objective], 0
    for position, optimal, value in zip(positions, labels.optimal, labels.value, strict=True):
        assert value == solve(list(position), objective).value
        costs = []
        for axes in action_axes(3):
            below = [solve(list(moved(position, axes, axis)), objective).value for axis in axes]
            costs.append(move + total(below))
            coords = np.array([[axis in axes for axis in range(3)]])
            answer = labeller.agent(*batch([position], 5), coords)
            assert (answer.solved[0], answer.value[0]) == (True, costs[-1])
            worst = {axis for axis, cost in zip(axes, below, strict=True) if cost == max(below)}
            assert set(np.flatnonzero(answer.optimal[0])) == worst
            single += len(worst) < len(axes)
        assert optimal.tolist() == [cost == value for cost in costs]
    assert single > 5


@pytest.mark.parametrize("dimension", [2, 3, 4, 5])
def test_digests_are_of_the_canonical_forms_of_the_solver(dimension):
    draw = random.Random(dimension)
    # Small values, which many axes share, and values that do not fit into one word together.
    positions = drawn(150, 2, dimension, 5, 2) + drawn(50, 3, dimension, 5, 10**12)
    labeller = Labeller(dimension, 6)
    digests = labeller.digests(*batch(positions, 6))
    forms = [canonical(position) for position in positions]
    assert [canonical(form) for form in forms] == forms
    assert (labeller.digests(*batch(forms, 6)) == digests).all()
    changed = []
    for position in positions:
        axes = draw.sample(range(dimension), dimension)
        shift = [draw.randint(0, 9) for _ in axes]
        changed.append([tuple(3 * point[j] + shift[j] for j in axes) for point in position])
        assert canonical(prune(changed[-1])) == canonical(position)
    assert (labeller.digests(*batch(changed, 6)) == digests).all()
    for half in digests.T.tolist():
        # One digest a form, and one form a digest.
        assert len(set(half)) == len(set(forms)) == len(set(zip(half, forms, strict=True)))


def test_labels_do_not_depend_on_what_came_before():
    positions = drawn(200, 5, 3, 5, 4)
    labeller = Labeller(3, 5)
    together = labeller.host(*batch(positions, 5))
    for number in range(0, 200, 20):
        labeller.clear()
        alone = labeller.host(*batch(positions[number : number + 1], 5))
        assert alone.value[0] == together.value[number]
        assert (alone.optimal[0] == together.optimal[number]).all()
    # A table so small that it is emptied all the time.
    small = Labeller(3, 5, room=2**10)
    often = small.host(*batch(positions, 5))
    known = often.solved
    assert known.sum() > 100
    assert (often.value[known] == together.value[known]).all()
    assert (often.optimal[known] == together.optimal[known]).all()


def test_equal_hashes_do_no_harm(monkeypatch):
    """With one hash for every key only the comparison of points tells positions apart."""
    positions = drawn(40, 6, 2, 4, 5)
    expected = Labeller(2, 4).host(*batch(positions, 4))
    monkeypatch.setattr(kernels, "mix", lambda *_: 7)
    search = Search("depth", 2, 4)
    for place, value in zip(positions, expected.value, strict=True):
        search.allow(10**6)
        assert search.value(search.numbers(place)[0]) == value


def test_huge_coordinates_are_told():
    points, count = batch([((2**57, 0), (0, 1)), ((2, 0), (0, 1))], 2)
    labels = Labeller(2, 2).host(points, count)
    assert labels.solved.tolist() == [False, True]
    assert labels.value.tolist() == [0, 2]
