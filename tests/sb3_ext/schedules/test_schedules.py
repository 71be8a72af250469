"""Values, forms and errors of the schedules."""

import copy
import dataclasses
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sb3_ext.schedules.schedules import (
    SCHEDULES,
    Chained,
    Constant,
    Cosine,
    Exponential,
    Inverse,
    Linear,
    Schedule,
    parse_schedule,
)

LINE = Linear(1.0, 0.0, 100)
STAIRS = Chained([(10, Constant(1.0)), (20, Linear(4.0, 2.0, 20)), (5, Linear(7.0, 6.0, 10))])
ENDLESS = Chained([(10, Constant(1.0)), (None, Inverse(1.0, 10.0))])


# Values worked out by hand, at the start, on the way, at the end and long after it.
@pytest.mark.parametrize(
    ("schedule", "values"),
    [
        (Constant(0.3), {0: 0.3, 10**9: 0.3}),
        (Exponential(1.0, 0.2, 0.5), {0: 1.0, 1: 0.6, 2: 0.4, 10**9: 0.2}),
        (Exponential(1e-3, 1e-8, 0.996), {50: 0.000818405}),
        (Inverse(0.5, 2.0), {0: 0.5, 4: 0.25, 12: 0.125, 10**12: 2e-12}),
        (LINE, {-5: 1.0, 0: 1.0, 25: 0.75, 100: 0.0, 101: 0.0}),
        (Linear(1.0, 0.0, unit="progress"), {0.25: 0.75}),
        (Linear(1.0, 0.0, 0.5, unit="progress"), {0.25: 0.5, 0.75: 0.0}),
        (Cosine(1.0, 0.0, 100), {0: 1.0, 50: 0.5, 100: 0.0, 1000: 0.0}),
        (Chained([(10, Linear(0, 1, 10)), (None, LINE)]), {0: 0, 5: 0.5, 10: 1, 35: 0.75, 999: 0}),
        (STAIRS, {0: 1.0, 9: 1.0, 10: 4.0, 20: 3.0, 30: 7.0, 33: 6.7, 35: 6.5, 1000: 6.5}),
        (ENDLESS, {20: 0.5, 10 + 9990: 0.001}),
    ],
    ids=str,
)
def test_values(schedule, values):
    for count, value in values.items():
        assert schedule(count) == pytest.approx(value, rel=1e-6, abs=1e-12)


@given(
    st.sampled_from(
        [
            LINE,
            STAIRS,
            ENDLESS,
            Exponential(1.0, 0.2, 0.5),
            Chained([(10, Linear(3.0, 0.5, 10)), (None, Cosine(0.5, 2.0, 20))]),
            Linear(0.0, 1.0, 50, unit="transitions"),
            Cosine(1.0, 0.0, 0.5, unit="progress"),
        ]
    ),
    st.one_of(st.integers(0, 10**7), st.floats(0, 1)),
)
def test_values_stay_within_the_bounds_and_copies_give_the_same(schedule, count):
    low, high = schedule.bounds()
    assert low - 1e-9 <= schedule(count) <= high + 1e-9
    for again in (pickle.loads(pickle.dumps(schedule)), copy.deepcopy(schedule)):
        assert again == schedule
        assert again is not schedule
        assert again(count) == schedule(count)
        assert again.unit == schedule.unit


@pytest.mark.parametrize(
    ("form", "schedule"),
    [
        (1.0e-4, Constant(1e-4)),
        (np.float32(0.5), Constant(0.5)),
        ("exp_1e-3_1e-8_0.996", Exponential(1e-3, 1e-8, 0.996)),
        ("inv_1e-3_10", Inverse(1e-3, 10)),
        ("lin_1e-3_1e-5", Linear(1e-3, 1e-5, unit="progress")),
        ("lin_1e-3_1e-5_100000", Linear(1e-3, 1e-5, 100000)),
        ("cos_1_0.5_20", Cosine(1, 0.5, 20)),
        (
            {"schedule": "exponential", "init": 1, "final": 0.1, "rate": 0.5, "unit": "progress"},
            Exponential(1, 0.1, 0.5, unit="progress"),
        ),
        ({"schedule": "linear", "init": 1, "final": 0, "steps": 1.0e5}, Linear(1, 0, 100000)),
        (
            {"schedule": "chained", "pieces": [[5, 0.1], [None, "inv_1_2"]]},
            Chained([(5, Constant(0.1)), (None, Inverse(1, 2))]),
        ),
    ],
    ids=str,
)
def test_forms(form, schedule):
    assert parse_schedule(form) == schedule
    assert parse_schedule(schedule) is schedule


def test_parts_need_one_unit():
    schedule = parse_schedule({"schedule": "chained", "pieces": [[5, 0.1]]}, unit="transitions")
    assert schedule.unit == schedule.pieces[0][1].unit == "transitions"
    with pytest.raises(ValueError, match="one unit, got transitions, updates"):
        Chained([(5, Constant(0.1, unit="transitions"))], unit="updates")
    with pytest.raises(ValueError, match="one unit, got progress, updates"):
        Chained([(5, Constant(0.1)), (5, Constant(0.1, unit="progress"))])
    assert Chained([(5, Constant(0.1, unit="transitions"))]).unit == "transitions"


def test_a_schedule_of_ones_own_takes_each_type_of_a_union():
    @SCHEDULES.register("test_steps")
    @dataclasses.dataclass
    class Steps(Schedule):
        every: int | bool

        def _value(self, count):
            return float(count // self.every)

        def bounds(self):
            return 0.0, math.inf

    assert parse_schedule({"schedule": "test_steps", "every": 10})(25) == 2.0
