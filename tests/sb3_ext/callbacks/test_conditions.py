"""Conditions on metrics."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sb3_ext.runs.stopping import Bound, Condition, Converged, parse_conditions


def feed(condition: Condition, values: list[float], field: str = "x") -> list[bool]:
    met = []
    for value in values:
        condition.observe({field: value, "other": 1e9})
        met.append(condition.met)
    return met


@pytest.mark.parametrize(
    ("bound", "values", "expected"),
    [
        (Bound("x", lower=1, upper=2), [0.9, 1, 2, 2.1], [0, 1, 1, 0]),
        (Bound("x", upper=2), [-1e9, 3], [1, 0]),
        (Bound("x", lower=0), [-1, 0], [0, 1]),  # `lower or -inf` would drop it
        (Bound("x", upper=0), [1, 0], [0, 1]),
        (Bound("x", lower=1, times=3), [1, 1, 0, 1, 1, 1, 0], [0, 0, 0, 0, 0, 1, 0]),
    ],
)
def test_bounds_include_their_ends_and_follow_the_newest_values(
    bound: Bound, values: list[float], expected: list[bool]
) -> None:
    assert feed(bound, values) == expected


def test_metrics_without_a_new_value_change_nothing() -> None:
    bound = Bound("x", lower=1)
    feed(bound, [5], field="y")
    assert not bound.met
    feed(bound, [5])
    bound.observe({})
    assert bound.met


def test_converged_needs_a_full_window_of_near_values() -> None:
    condition = Converged("x", window=3, tolerance=0.5, confidence=1.0)
    assert feed(condition, [0, 10, 10.2, 9.9, 20]) == [False, False, False, True, False]


def test_converged_allows_a_share_of_outliers() -> None:
    values = [10.0, 10.1, 10.0, 13.0]
    assert feed(Converged("x", window=4, tolerance=0.9, confidence=0.75), values)[-1]
    assert not feed(Converged("x", window=4, tolerance=0.9, confidence=0.76), values)[-1]


def test_converged_leaves_out_the_warmup() -> None:
    condition = Converged("x", window=2, tolerance=0.1, warmup=3)
    assert feed(condition, [1, 1, 1, 1, 1]) == [False] * 4 + [True]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Bound("x", lower=1, times=4),
        lambda: Converged("x", window=4, tolerance=0.3, warmup=2),
    ],
)
def test_state_goes_through_json(make: Any) -> None:
    values = [1.0, 1.1, 0.9, 1.0, 1.2, 1.1, 1.0, 1.1]
    whole, first, second = make(), make(), make()
    expected = feed(whole, values)
    for split in range(len(values)):
        first = make()
        begin = feed(first, values[:split])
        second = make()
        second.load_state_dict(json.loads(json.dumps(first.state_dict())))
        assert begin + feed(second, values[split:]) == expected
    assert True in expected


def test_from_configuration_files() -> None:
    first, second = parse_conditions(
        [
            {"condition": "bound", "field": "rho/score", "lower": 0.1},
            {"condition": "converged", "field": "rho/score", "window": 4},
        ]
    )
    assert isinstance(first, Bound)
    assert isinstance(second, Converged)
    assert (first.field, first.lower, second.window) == ("rho/score", 0.1, 4)
    assert parse_conditions(first) == [first]


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ("bound", ValueError, "until: must be a mapping with the key condition"),
        ({"field": "x"}, ValueError, r"with the key condition \(bound, converged\), got"),
        (
            {"condition": "bounds", "field": "x"},
            ValueError,
            "unknown condition 'bounds'; did you mean 'bound'",
        ),
        ({"condition": "bound", "field": "x", "low": 1}, ValueError, "did you mean 'lower'"),
        ({"condition": "bound", "lower": 1}, ValueError, "missing a required argument: 'field'"),
        ({"condition": "bound", "field": "x"}, ValueError, "give lower, upper or both"),
        (
            {"condition": "bound", "field": "x", "lower": 2, "upper": 1},
            ValueError,
            "upper must be at least lower",
        ),
        ({"condition": "bound", "field": "", "lower": 2}, ValueError, "field must be the name"),
        ({"condition": "converged", "field": "x", "window": 1}, ValueError, "window must be"),
        ({"condition": "converged", "field": "x", "confidence": 0}, ValueError, "confidence must"),
        ({"condition": "bound", "field": "x", "lower": True}, ValueError, "lower must be a number"),
    ],
)
def test_mistakes_are_named(value: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        parse_conditions(value)
    assert "\n" not in str(caught.value)
