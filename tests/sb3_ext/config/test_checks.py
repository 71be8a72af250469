"""Numbers from configuration files, names for classes, and the errors that say what is wrong."""

from __future__ import annotations

import pytest

from sb3_ext.config.checks import (
    Registry,
    unknown_word,
)


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
