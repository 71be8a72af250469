"""Hints from the solver within seconds."""

from __future__ import annotations

from collections.abc import Sequence

from resgym.game.exact import Position, moved
from resgym.game.spec import Axes
from resgym.players.plain import PLAIN_HOSTS
from resgym.render.games import counted, format_axes
from resgym.solver.solve import solve

HINT_SECONDS = 2.0
"""Seconds that the solver gets for one hint."""

MAX_POSITIONS = 200_000
"""Largest table of the solver for one hint, about 80 MB."""


def hint(
    points: Position, named: Sequence[int], names: Sequence[str], seconds: float = HINT_SECONDS
) -> str:
    """Return a best move of an unfinished position, or what could be proved about it.

    Args:
        points: the position.
        named: the host's set if the agent is to choose; empty if the host is to play.
        names: names of the axes.
        seconds: time limit of the solver.
    """
    if named:
        return _hint_for_agent(points, tuple(named), names, seconds)
    solution = solve(list(points), time_limit=seconds, max_positions=MAX_POSITIONS)
    if solution.proved and solution.tree is not None and solution.tree.root.axes is not None:
        axes, most = solution.tree.root.axes, counted(solution.value, "move")
        return f"{format_axes(axes, names)} is best: the game then lasts at most {most}"
    axes = PLAIN_HOSTS["zeillinger"](points)
    return (
        f"{format_axes(axes, names)}, which is Zeillinger's choice; in {seconds:g} s the solver "
        f"could only prove that the host can be held up for at least "
        f"{counted(solution.lower_bound, 'move')}"
    )


def _hint_for_agent(points: Position, named: Axes, names: Sequence[str], seconds: float) -> str:
    share, room = seconds / len(named), MAX_POSITIONS // len(named)
    found = {
        axis: solve(moved(points, named, axis), time_limit=share, max_positions=room)
        for axis in named
    }
    best = max(found, key=lambda axis: (found[axis].lower_bound, -axis))
    count = counted(found[best].lower_bound, "move")
    if all(solution.proved for solution in found.values()):
        return f"{names[best]} is best: the game can then last {count} more"
    return (
        f"{names[best]}, after which the game can last at least {count} more; there was not "
        "enough time to compare all axes"
    )
