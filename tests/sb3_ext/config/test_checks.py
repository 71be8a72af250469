"""Numbers from configuration files, names for classes, and the errors that say what is wrong."""

from functools import partial

import pytest

from sb3_ext.config.checks import Registry


def test_a_registry():
    shapes = Registry("shape")
    shapes.register("circle", "a circle")
    assert shapes.register("square")("a square") == shapes.resolve("square") == "a square"
    assert shapes.register("circle", "a circle") == "a circle"
    assert list(shapes) == ["circle", "square"]
    assert shapes.name_of("a circle") == "circle"
    for call, name, said in (
        (shapes.resolve, "Sqare", "unknown shape 'Sqare'; did you mean 'square'.*choices: circle"),
        (shapes.resolve, "xyz", "unknown shape 'xyz'; choices: circle, square$"),
        (shapes.resolve, 3, "shape must be one of the names circle, square, got 3"),
        (shapes.name_of, "a line", "is not a registered shape"),
        (partial(shapes.register, "circle"), "another", "registered already"),
    ):
        with pytest.raises((TypeError, ValueError), match=said):
            call(name)
