"""Numbers from configuration files, names for classes, and the errors that say what is wrong."""

from functools import partial

import pytest

from resgym.lazy import Lazy
from sb3_ext.callbacks import CALLBACKS
from sb3_ext.checkpoints.policy_description import POLICIES
from sb3_ext.config.checks import Registry
from sb3_ext.ddqn.algorithms import ALGORITHMS
from sb3_ext.networks.extractors import EXTRACTORS


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


@pytest.mark.parametrize(
    ("registry", "later"),
    [
        (ALGORITHMS, {"minimax"}),
        (CALLBACKS, {"other_size", "worst_case_positions"}),
        (EXTRACTORS, {"any_size"}),
        (POLICIES, {"AgentPolicy", "CnnPolicy", "HostPolicy", "PointsPolicy", "QPolicy"}),
    ],
)
def test_what_is_imported_later_has_its_name_from_the_beginning(registry, later):
    """So no other order of imports changes a table, and nobody else takes the name."""
    assert {name for name, entry in registry.items() if isinstance(entry, Lazy)} == later
    for name in registry:
        assert registry.resolve(registry.name_of(registry[name])) is registry[name]
    for name in later:
        with pytest.raises(ValueError, match="is registered already; take another name"):
            registry.register(name, int)
