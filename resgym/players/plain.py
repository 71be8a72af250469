"""Scripted hosts in plain Python, without torch: fast for a few positions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations

from resgym.game.exact import Position
from resgym.game.spec import Axes


def _zeillinger(points: Position, *, lex: bool = False) -> Axes:
    """See `resgym.players.scripted`."""
    if lex:
        points = tuple(sorted(points, reverse=True))

    def key(v: list[int]) -> tuple[int, ...]:
        low, high = min(v), max(v)
        axes = (v.index(low), v.index(high)) if lex else ()
        return (high - low, v.count(low) + v.count(high), *axes)

    differences = (
        [a - b for a, b in zip(one, other, strict=True)] for one, other in combinations(points, 2)
    )
    v = min(differences, key=key)  # the first of equal ones
    first, second = v.index(min(v)), v.index(max(v))
    return (0, 1) if first == second else tuple(sorted((first, second)))


PLAIN_HOSTS: dict[str, Callable[[Position], Axes]] = {
    "all_coord": lambda points: tuple(range(len(points[0]))),
    "zeillinger": _zeillinger,
    "zeillinger_lex": partial(_zeillinger, lex=True),
}
"""Each function returns the host's set in an unfinished position of the default rule.

The points are in the order in which they were typed, as in `resgym.players.asking.Seat`."""
