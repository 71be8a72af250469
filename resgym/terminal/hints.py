"""Advice for a person at the table: from the solver, or what can be said without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from resgym.game.actions import action_axes
from resgym.game.rng import RowRandom
from resgym.game.state import GameState
from resgym.players import make_host
from resgym.render.positions import format_axes
from resgym.solver.solve import solve

__all__ = ["SECONDS", "agent_hint", "host_hint"]

SECONDS = 2.0
"""Time that the solver gets for one hint."""

Points = list[tuple[int, ...]]


def host_hint(state: GameState, names: Sequence[str], seconds: float = SECONDS) -> str:
    """A best set in one unfinished game, with the moves it needs; else Zeillinger's set."""
    solution = solve(state.point_lists()[0], time_limit=seconds)
    if solution.proved and solution.tree is not None and solution.tree.root.axes is not None:
        axes = format_axes(solution.tree.root.axes, names)
        return f"hint: {axes} is best, the game then lasts at most {_moves(solution.value)}"
    rng = RowRandom(torch.zeros_like(state.count))
    action = int(make_host("zeillinger").act(state, None, rng))
    axes = format_axes(action_axes(state.points.shape[2])[action], names)
    return (
        f"hint: {axes}, as Zeillinger would play; the solver has proved in {seconds:g} s only that "
        f"the game can be made to last at least {_moves(solution.lower_bound)}"
    )


def agent_hint(after: Mapping[int, Points], names: Sequence[str], seconds: float = SECONDS) -> str:
    """The axis after which a perfect host needs most moves, or what is proved about them.

    The solver's time limit is for the positions ``after`` all legal axes together.
    """
    found = {axis: solve(points, time_limit=seconds / len(after)) for axis, points in after.items()}
    best = max(found, key=lambda axis: (found[axis].lower_bound, -axis))
    bound, exact = found[best].lower_bound, found[best].proved
    told = all(solution.proved for axis, solution in found.items() if axis != best)
    if bound == 0 and exact and told:
        return "hint: every axis ends the game"
    count = f"{'' if exact else 'at least '}{_moves(bound)}"
    if told:
        return f"hint: {names[best]} is best, the game can then last {count} more"
    return (
        f"hint: {names[best]}, after which the game can last {count} more; the solver had not the "
        "time to compare all axes"
    )


def _moves(number: float | None) -> str:
    return f"{number} {'move' if number == 1 else 'moves'}"
