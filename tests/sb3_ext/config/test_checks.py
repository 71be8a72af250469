"""Numbers from configuration files, names for classes, and the errors that say what is wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sb3_ext.config.checks import (
    Registry,
    check_count,
    check_number,
    numeric_string_hint,
    unknown_word,
)


def test_numbers():
    for text, hinted in (
        ("1e-4", True),
        ("1.5", True),
        ("", False),
        ("abc", False),
        ("nan", False),
    ):
        assert bool(numeric_string_hint(text)) == hinted
    for value in (1, 1.5, np.float32(1.5), np.int64(3)):
        assert check_number("x", value) == float(value)
        assert type(check_number("x", value)) is float
    for wrong in (True, None, "abc", [1]):
        with pytest.raises(TypeError, match="x must be a number, got"):
            check_number("x", wrong)
    assert check_number("x", 0, low=0) == 0
    for value, above, said in (
        (0, True, r"\(0, 1\], got 0"),
        (2, False, r"\[0, 1\], got 2"),
        (math.nan, False, "got nan"),
    ):
        with pytest.raises(ValueError, match=rf"x must lie in .*{said}"):
            check_number("x", value, low=0, high=1, above=above)
    assert check_count("n", 1.0e5) == 100000
    assert type(check_count("n", 1.0e5)) is int
    assert check_count("n", 0, low=0) == 0
    for wrong in (0, 2.5, -1, 2.0**70):
        with pytest.raises(ValueError, match="n must be"):
            check_count("n", wrong)


def test_a_registry():
    shapes: Registry[str] = Registry("shape")
    shapes.register("circle", "a circle")
    assert shapes.register("square")("a square") == shapes.resolve("square") == "a square"
    assert shapes.register("circle", "a circle") == "a circle"
    assert list(shapes) == ["circle", "square"]
    assert shapes.name_of("a circle") == "circle"
    for name, said in (
        ("Sqare", "unknown shape 'Sqare'; did you mean 'square'.*choices: circle, square"),
        ("xyz", "unknown shape 'xyz'; choices: circle, square$"),
    ):
        with pytest.raises(ValueError, match=said):
            shapes.resolve(name)
    with pytest.raises(TypeError, match="shape must be one of the names circle, square, got 3"):
        shapes.resolve(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="is not a registered shape"):
        shapes.name_of("a line")
    for name, said in (("circle", "registered already"), ("", "not empty"), (3, "needs a name")):
        with pytest.raises(ValueError, match=said):
            shapes.register(name, "another")  # type: ignore[arg-type]
    assert unknown_word("shape", "x", []) == "unknown shape 'x'; choices: none"
