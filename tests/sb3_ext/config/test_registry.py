"""Names for classes, and the errors for names that are not there."""

from __future__ import annotations

import pytest

from sb3_ext.config.registry import Registry, unknown_word


@pytest.fixture
def shapes():
    registry = Registry("shape")
    registry.register("circle", "a circle")

    @registry.register("square")
    def square():
        return 4

    return registry


def test_entries_are_found_by_name(shapes):
    assert shapes.resolve("circle") == "a circle"
    assert shapes.resolve("square")() == 4
    assert list(shapes) == ["circle", "square"]
    assert len(shapes) == 2
    assert "square" in shapes
    assert "triangle" not in shapes
    assert shapes.name_of("a circle") == "circle"


def test_the_decorator_returns_what_it_was_given(shapes):
    def line():
        return 1

    assert shapes.register("line")(line) is line
    assert shapes.register("line", line) is line


def test_unknown_names_get_the_nearest_and_the_choices(shapes):
    with pytest.raises(ValueError, match="unknown shape 'Sqare'; did you mean 'square'") as error:
        shapes.resolve("Sqare")
    assert "choices: circle, square" in str(error.value)
    with pytest.raises(ValueError, match=r"unknown shape 'xyz'; choices: circle, square$"):
        shapes.resolve("xyz")
    with pytest.raises(TypeError, match="shape must be one of the names circle, square, got 3"):
        shapes.resolve(3)
    with pytest.raises(ValueError, match="is not a registered shape"):
        shapes.name_of("a line")


def test_names_are_not_taken_twice(shapes):
    with pytest.raises(ValueError, match="'circle' is registered already"):
        shapes.register("circle", "another")
    assert shapes.resolve("circle") == "a circle"
    with pytest.raises(ValueError, match="not empty"):
        shapes.register("")
    with pytest.raises(ValueError, match="needs a name"):
        shapes.register(3)


def test_without_choices():
    assert unknown_word("shape", "x", []) == "unknown shape 'x'; choices: none"
