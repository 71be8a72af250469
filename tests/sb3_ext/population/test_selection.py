"""Who copies whom, and what hyperparameters become."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from sb3_ext.population.config import ExploreRule
from sb3_ext.population.selection import PURPOSES, copied_from, explored, random_of


def sources(count: int, seed: int = 0) -> list[np.random.Generator]:
    return [np.random.default_rng([seed, number]) for number in range(count)]


@pytest.mark.parametrize(
    ("fitness", "share", "copies", "copied"),
    [
        ([0.1, 0.9, 0.5, 0.4], 0.25, {0}, {1}),
        ([0.1, 0.9, 0.5, 0.4], 0.5, {0, 3}, {1, 2}),
        ([0.1, 0.9, 0.5, 0.4], 0.0, set(), set()),
        ([0.1, 0.9, 0.5], 0.5, {0}, {1}),
        ([0.3, 0.2], 0.01, {1}, {0}),
        ([0.3], 0.5, set(), set()),
        ([0.5, 0.5, 0.5], 0.25, {0}, {2}),  # of equal ones the later are better
    ],
)
def test_the_worst_copy_the_best(
    fitness: list[float], share: float, copies: set[int], copied: set[int]
) -> None:
    seen: Counter[int] = Counter()
    for seed in range(40):
        found = copied_from(fitness, share, sources(len(fitness), seed))
        assert found.keys() == copies
        seen.update(found.values())
    assert seen.keys() == copied
    for number in seen.values():  # drawn alike
        assert number > 40 * len(copies) / len(copied) / 2


def test_a_value_is_multiplied_and_stays_within_its_bounds() -> None:
    rule = ExploreRule(factors=[0.5, 3.0], low=0.1, high=2.0)
    source = np.random.default_rng(0)
    assert {explored(0.5, rule, source) for _ in range(40)} == {0.25, 1.5}
    assert {explored(0.125, rule, source) for _ in range(40)} == {0.1, 0.375}
    assert {explored(1.0, rule, source) for _ in range(40)} == {0.5, 2.0}


def test_a_whole_number_stays_one() -> None:
    rule = ExploreRule(factors=[1.25], low=1.0, high=100.0)
    value = explored(65, rule, np.random.default_rng(0))
    assert (value, type(value)) == (81, int)


def test_every_decision_has_its_own_numbers() -> None:
    drawn = {
        random_of(seed, number, member, role, purpose).integers(2**62)
        for seed in range(2)
        for number in range(3)
        for member in range(3)
        for role in range(2)
        for purpose in PURPOSES
    }
    assert len(drawn) == 2 * 3 * 3 * 2 * len(PURPOSES)
