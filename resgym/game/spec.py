"""The frozen sizes and options of a game, the only source of shapes, and the host's action numbers.

The actions are the numbers 1..2^D-1 that are not powers of two, in order, and bit j of a number is
axis j. For D = 3 the actions 0, 1, 2, 3 are the sets {0,1}, {0,2}, {1,2}, {0,1,2}. If sets of one
axis count too (``least`` 1, see `GameSpec.least_axes`), action k is the number k + 1.
"""

from __future__ import annotations

import difflib
import inspect
import math
import operator
import re
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, get_args

from resgym.texts import shown
from resgym.trust import packaged

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Point = tuple[int, ...]
"""A whole number for each axis."""

Axes = tuple[int, ...]
"""A set of axes, in ascending order."""

Role = Literal["host", "agent"]
Polytope = Literal["dominance", "newton"]
P = ParamSpec("P")
R = TypeVar("R")

RULES: dict[str, Any] = {
    "basic": "resgym.game.state:Rule",
    "polyhedra": "resgym.game.state:Polyhedra",
    "thom": "resgym.game.state:Thom",
}
"""Rules by name: registered classes, and those of this package as ``module:class``."""

MAX_DIMENSION = 10

MAX_COORDINATE = 2**59
"""Largest coordinate of a state. A sum of ``MAX_DIMENSION`` such values fits in int64, so a move
can be computed first and rejected afterwards, without wrapping."""

MAX_NUM_POINTS = 1024
"""Pruning compares all pairs, so memory grows with the square of the number of points."""

MAX_START_VALUE = MAX_UNIT = 2**31 - 2
MAX_START_ATTEMPTS = 256


def _integer(value: Any, wanted: str) -> int:
    with suppress(TypeError):  # also what an array says that is not one integer
        if not isinstance(value, bool):
            return operator.index(value)
    raise TypeError(f"{wanted}, got {shown(value)} ({type(value).__name__})")


def check_integer(name: str, value: object, low: int, high: int | None = None) -> int:
    """Return ``value`` as an int if it is within ``low..high``.

    Raises:
        TypeError: ``value`` is not an integer (booleans are refused too).
        ValueError: ``value`` is outside the range.
    """
    number = _integer(value, f"{name} must be an integer")
    if number < low or (high is not None and number > high):
        allowed = f"at least {low}" if high is None else f"between {low} and {high}"
        raise ValueError(f"{name} must be {allowed}, got {shown(number)}")
    return number


def check_flag(name: str, value: object) -> None:
    """Raise TypeError unless a value is True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {shown(value)}")


IMPORTED = " or of a module imported before"
"""What an error says behind a list of names to which a module may add its own."""


def check_choice(name: str, value: object, choices: Collection[str], others: str = "") -> str:
    """Return ``value`` if it is one of the choices; the ValueError lists them and ``others``."""
    choices = [*choices]  # in which a list can be looked for, too
    if value not in choices:
        raise ValueError(
            f"{name} must be one of {choices}{others}, got {shown(value)}{nearest(value, choices)}"
        )
    return str(value)


def nearest(given: object, names: Iterable[str]) -> str:
    """Return a hint for an error, the name closest to what was given; nothing if none is close."""
    text = str(given).lower()[:50] or "?"
    lowered = {name.lower(): name for name in names}
    close = [name for name in lowered if name.startswith(text)]
    close = close or difflib.get_close_matches(text, lowered, n=1)
    return f" (did you mean {lowered[close[0]]!r}?)" if close else ""


def check_keywords(function: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise TypeError for a keyword that a function does not have; the message lists all."""
    for name in given:
        if name not in known:
            raise TypeError(
                f"{function}() got an unexpected keyword argument {name!r}"
                f"{nearest(name, known)}; allowed are {', '.join(known) or 'none'}"
            )


def hints_keywords(function: Callable[P, R]) -> Callable[P, R]:
    """Let the error of an unknown keyword name the closest one and all others (decorator)."""
    known = [name for name in inspect.signature(function).parameters if name != "self"]

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        check_keywords(function.__qualname__.removesuffix(".__init__"), kwargs, known)
        return function(*args, **kwargs)

    return checked


def register(table: dict[str, Any], kind: str, name: str) -> Callable[[R], R]:
    """Return a decorator that enters an object of a kind into a table, under a free name.

    Raises:
        ValueError: the name is taken, or has other characters than letters, digits, ``_``, ``-``.
    """
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name):
        raise ValueError(f"name must be letters, digits, '_' or '-', got {name!r}")
    if name in table:
        raise ValueError(f"name {name!r} is already taken by another {kind}")

    def decorator(entry: R) -> R:
        table[name] = entry
        return entry

    return decorator


def check_function(name: str, function: Any, *arguments: str, instead: str = "") -> None:
    """Raise TypeError unless a function takes these arguments, by position.

    The message begins with ``name`` and what else is allowed, such as ``a name or ``.
    """
    given = getattr(function, "__name__", shown(function))
    try:
        given += str(inspect.signature(function))
        inspect.signature(function).bind(*arguments)
    except TypeError:
        expected = ", ".join(arguments)
        raise TypeError(f"{name} must be {instead}a function ({expected}), got {given}") from None
    except ValueError:
        pass  # some functions written in C do not tell what they take


def check_coordinates(values: Iterable[Any], name: str) -> Point:
    """Return a point as Python integers.

    Raises:
        TypeError: a coordinate is not an integer; the message calls the point ``name``.
        ValueError: a coordinate is negative or above 2^59.
    """
    point = tuple(_integer(value, f"{name} must hold integers") for value in values)
    for value in point:
        if not 0 <= value <= MAX_COORDINATE:
            given = value if abs(value) < 10**99 else "a number of over 99 digits"
            raise ValueError(f"{name} must hold integers in 0..2^59, got {given}")
    return point


@cache
def action_axes(dimension: int, least: int = 2) -> tuple[Axes, ...]:
    """Return the axis set of every host action, as sorted tuples."""
    return tuple(
        tuple(axis for axis in range(dimension) if number >> axis & 1)
        for number in range(1, 2**dimension)
        if number.bit_count() >= least
    )


@cache
def host_action_table(dimension: int, device: torch.device | str = "cpu", least: int = 2) -> Tensor:
    """Return bool [A, D]: row k marks the axes of action k. Cached: do not write to it."""
    return axes_to_coords(action_axes(dimension, least), dimension).to(device)


def axes_to_coords(sets: Iterable[Axes], dimension: int) -> Tensor:
    """Return sets of axes as rows of flags, bool [N, D]."""
    import torch

    return torch.tensor([[axis in axes for axis in range(dimension)] for axes in sets])


@cache
def _ranks(dimension: int, device: torch.device) -> Tensor:
    import torch

    number = torch.arange(2**dimension, device=device)
    several = number & (number - 1) != 0
    return torch.where(several, several.cumsum(0) - 1, -1)


def coords_to_action(coords: Tensor) -> Tensor:
    """Return the actions int64 [N] of sets, bool or integer [N, D]; -1 for fewer than two axes."""
    import torch

    dimension = coords.shape[-1]
    numbers = (coords.to(torch.int64) << torch.arange(dimension, device=coords.device)).sum(-1)
    return _ranks(dimension, coords.device)[numbers]


def pair_to_action(first: Tensor, second: Tensor, dimension: int) -> Tensor:
    """Return the actions int64 [N] of the sets {first, second}, two different axes int64 [N]."""
    return _ranks(dimension, first.device)[(1 << first) | (1 << second)]


@dataclass(frozen=True)
class GameSpec:
    """Sizes and options that define one game.

    Attributes:
        dimension: number of axes D, 2 to 10.
        max_num_points: number of rows P of a state, 1 to 1024.
        max_value: random starts are uniform on 0..max_value inclusive.
        polytope: ``dominance`` keeps the points that no other point is <= to in all axes (a
            superset of the vertices with the same ends); ``newton`` keeps exactly the vertices of
            conv(S) + R^d_{>=0}.
        reposition: subtract the per-axis minimum after every move (changes no outcome).
        rule: a name of `RULES`: ``basic``, ``polyhedra``, ``thom``, or one that was registered.
        unit: with ``polyhedra``, the common denominator of the coordinates, which are multiples of
            1/unit; 1 with the other rules.
    """

    dimension: int = 3
    max_num_points: int = 20
    max_value: int = 20
    polytope: Polytope = "dominance"
    reposition: bool = False
    rule: str = "basic"
    unit: int = 1

    def __post_init__(self) -> None:
        for name, low, high in (
            ("dimension", 2, MAX_DIMENSION),
            ("max_num_points", 1, MAX_NUM_POINTS),
            ("max_value", 1, MAX_START_VALUE),
            ("unit", 1, MAX_UNIT),
        ):
            object.__setattr__(self, name, check_integer(name, getattr(self, name), low, high))
        check_choice("polytope", self.polytope, get_args(Polytope))
        check_flag("reposition", self.reposition)
        check_choice("rule", self.rule, RULES, IMPORTED)
        if self.rule != "polyhedra" and self.unit != 1:
            raise ValueError(f"unit must be 1 with rule {self.rule!r}, got {self.unit}")
        if self.rule == "polyhedra" and self.reposition:
            raise ValueError("reposition must be False with rule 'polyhedra', got True")

    @property
    def kind(self) -> Any:
        """The class of the rule, see `resgym.game.state.Rule`."""
        entry = RULES[self.rule]
        return packaged(entry) if isinstance(entry, str) else entry

    @property
    def num_host_actions(self) -> int:
        """Number of the host's sets: 2^D - D - 1, or 2^D - 1 with single axes."""
        return len(action_axes(self.dimension, self.least_axes))

    @property
    def least_axes(self) -> int:
        """Least number of axes of a host's set: 2, or 1 with ``polyhedra``."""
        return 1 if self.rule == "polyhedra" else 2

    @property
    def start_attempts(self) -> int:
        """How often a finished random start is drawn again before a fixed start replaces it.

        A start is finished when one of its P points is <= all the others, which has probability
        at most q = P * (sum over v of (1/V) * ((V - v)/V)^(P-1))^D with V = max_value + 1. The
        count is the least k with q^k < 1e-12 (so for the default sizes the fixed start is never
        met), capped because tiny games can be finished almost always.

        With ``polyhedra`` a start is finished when the sum of a point is below the unit u, with
        probability at most P * C(u - 1 + D, D) / V^D.
        """
        values = self.max_value + 1
        others = self.max_num_points - 1
        if self.rule == "polyhedra":
            below = math.comb(self.unit - 1 + self.dimension, self.dimension)
            bound = self.max_num_points * below / values**self.dimension
        else:
            if values > 4096:
                # The sum is at most 1/V above the integral of (1-u)^(P-1), which is 1/P.
                on_axis = 1.0 / self.max_num_points + 1.0 / values
            else:
                on_axis = sum(((values - v) / values) ** others for v in range(values)) / values
            bound = self.max_num_points * on_axis**self.dimension
        if bound >= 0.9:
            return MAX_START_ATTEMPTS
        return min(MAX_START_ATTEMPTS, max(1, math.ceil(math.log(1e-12) / math.log(bound))))


GameSpec.__init__ = hints_keywords(GameSpec.__init__)  # type: ignore[method-assign]
