"""What the moves of a game cost, by proofs of the solver."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from resgym.game.exact import Position, moved, reduced
from resgym.game.spec import Axes, Point
from resgym.solver.proof import prove
from resgym.solver.solution import Limits
from resgym.terminal.hints import HINT_SECONDS, MAX_POSITIONS
from resgym.terminal.match import Match

REMEMBERED = 50_000
"""Number of proved depths that are kept."""

_DEPTHS: dict[Position, int] = {}


def score(match: Match, named: Axes = (), seconds: float = HINT_SECONDS) -> dict[str, Any]:
    """Compare the moves of a game with best play.

    Args:
        match: the game.
        named: a set that the host has chosen and the agent has not answered.
        seconds: time limit of the solver.

    Returns:
        ``par``: the least depth of the start. ``left``: the moves that remain under best play.
        ``costs``: for each move the number of moves by which the host's set made the game longer,
        and by which the agent's axis made it shorter. ``lost``: the sums of both. ``stalled``: the
        number of moves since ``left`` was last less than ever before. None is a number that was
        not proved in time.
    """
    limits = Limits(seconds, MAX_POSITIONS)

    def depth(points: Sequence[Point]) -> float:
        form = reduced(points)
        if form not in _DEPTHS and limits.seconds_left > 0:
            proof = prove(form, "depth", limits)
            if len(_DEPTHS) >= REMEMBERED:
                _DEPTHS.clear()
            if proof.settled:
                _DEPTHS[form] = proof.lower
        return _DEPTHS.get(form, math.inf)

    def longest(points: Position, axes: Axes) -> float:
        return max(depth(moved(points, axes, axis)) for axis in axes)

    # The last positions first: they are the easiest.
    steps = reversed([*zip(match.positions, match.moves, strict=False)])
    worst = [longest(points, axes) for points, (axes, _) in steps][::-1]
    depths = [depth(points) for points in reversed(match.positions)][::-1]
    costs = [
        (1 + most - before, most - after)
        for most, (before, after) in zip(worst, pairwise(depths), strict=True)
    ]
    stalled = len(costs) - depths.index(min(depths))
    return {
        "par": _known(depths[0]),
        "left": _known(1 + longest(match.points, named) if named else depths[-1]),
        "costs": [[*map(_known, cost)] for cost in costs],
        "lost": [_known(sum(seat)) for seat in zip(*costs, strict=True)] or [0, 0],
        "stalled": _known(depths[-1]) and stalled,
    }


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
