"""Checks of numbers that come from configuration files."""

from __future__ import annotations

import math

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sb3_ext.config.checks import check_count, check_number, numeric_string_hint


@given(st.from_regex(r"-?[0-9]{1,3}(\.[0-9]{1,3})?([eE][-+]?[0-9]{1,2})?", fullmatch=True))
def test_the_advice_is_a_number_in_yaml(text):
    hint = numeric_string_hint(text)
    assert hint
    if "write it without" in hint:
        assert isinstance(yaml.safe_load(text), (int, float))
    else:
        written = hint.rsplit("write ", 1)[1].rstrip(")")
        assert isinstance(yaml.safe_load(text), str)
        assert yaml.safe_load(written) == float(text)


@pytest.mark.parametrize("value", ["", "abc", "nan", "inf", 1.0, None])
def test_no_advice_for_other_values(value):
    assert numeric_string_hint(value) == ""


@pytest.mark.parametrize("value", [1, 1.5, np.float32(1.5), np.int64(3)])
def test_numbers_pass(value):
    assert check_number("x", value) == float(value)
    assert type(check_number("x", value)) is float


def test_bounds():
    assert check_number("x", 0, low=0) == 0
    with pytest.raises(ValueError, match=r"x must lie in \(0, 1\], got 0"):
        check_number("x", 0, low=0, high=1, above=True)
    with pytest.raises(ValueError, match=r"x must lie in \[0, 1\], got 2"):
        check_number("x", 2, low=0, high=1)
    for value in (math.nan, math.inf):
        with pytest.raises(ValueError, match="x must lie in"):
            check_number("x", value)
    for wrong in (True, None, "abc", [1]):
        with pytest.raises(TypeError, match="x must be a number, got"):
            check_number("x", wrong)


def test_counts():
    assert check_count("n", 1.0e5) == 100000
    assert type(check_count("n", 1.0e5)) is int
    assert check_count("n", 0, low=0) == 0
    for wrong in (0, 2.5, -1):
        with pytest.raises(ValueError, match="n must be a whole number of at least 1"):
            check_count("n", wrong)
