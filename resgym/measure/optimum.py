"""The greatest rho that any host can reach against an agent, from the same starts.

Against an agent without memory, the best host plays the shortest game from each start, see
`worst_cases`. Against an agent that always takes the first axis of a set, or
always the last, only a few games need to be compared, and all of them are.
"""

from __future__ import annotations

import torch
from torch import Tensor

from resgym.game.spec import MAX_COORDINATE, GameSpec
from resgym.game.state import GameState
from resgym.players import ChooseFirstAgent, ChooseLastAgent, Player
from resgym.players.asking import InexactPlayerError
from resgym.solver.players import OptimalAgent
from resgym.solver.responses import worst_cases

BY_SET = (ChooseFirstAgent, ChooseLastAgent)
"""Agents that look at the set only."""

GAMES = 200_000
"""Number of partial games against an agent `BY_SET` that are compared at once; few are needed."""

ANSWERS = 20_000
"""Number of answers of an agent per start before its search is given up."""


def optimum(
    agent: Player, starts: GameState, spec: GameSpec, max_moves: int
) -> tuple[float, float] | None:
    """Return a lower and an upper bound of the greatest rho against an agent.

    Args:
        agent: a player of ``spec``.
        starts: N positions.
        spec: the game.
        max_moves: games are cut after this many moves.

    Returns:
        None if it cannot be found: the agent draws random numbers, remembers moves or asks the
        solver; the rule is not ``basic``; or no game can be finished.
    """
    starts = starts.to("cpu")
    if spec.rule != "basic" or type(agent) is OptimalAgent:
        return None
    try:
        least, most = shortest_games(agent, starts, spec, max_moves)
    except InexactPlayerError:
        return None
    # A start that is finished already is not credited to the host.
    won = [int(((moves > 0) & (moves <= max_moves)).sum()) for moves in (least, most)]
    few, many = (int(moves.clamp(max=max_moves).sum()) for moves in (least, most))
    return (won[1] / many, won[0] / few) if won[0] else None


def shortest_games(
    agent: Player, starts: GameState, spec: GameSpec, max_moves: int
) -> tuple[Tensor, Tensor]:
    """Return the moves of the shortest games from N starts against an agent without memory.

    Returns:
        int64 [N] and int64 [N]: lower and upper bounds; ``max_moves`` + 1 for anything longer.
    """
    highest, dimension = int(starts.points[starts.alive()].max()), spec.dimension
    # The largest possible coordinate after that many moves of suffixes.
    highest *= dimension * (2 + max_moves // (dimension - 1)) ** (dimension - 1)
    if type(agent) in BY_SET and highest < MAX_COORDINATE:
        last, parts = type(agent) is ChooseLastAgent, torch.arange(starts.num_games).split(100)
        bounds = [_by_suffixes(starts.select(rows), max_moves, last) for rows in parts]
        least, most = map(torch.cat, zip(*bounds, strict=True))
        return least, most
    budget = max(4, ANSWERS // spec.num_host_actions)
    return worst_cases(agent, starts, spec, max_moves, budget)


def _by_suffixes(starts: GameState, max_moves: int, last: bool) -> tuple[Tensor, Tensor]:
    """Return `shortest_games` for an agent that takes the first axis of any set, or the ``last``.

    If it takes the first, only later axes are added to an axis. So the last axis never changes, nor
    does the sign of the last difference of two points. The point that is left at the end is the
    least one when axes are compared from the last one on, and a game ends as soon as the
    coordinates ``above`` it of all points are >= 0 on all axes. Suppose it ends after a[i] moves on
    axis i. Then it also ends if the moves on the last axis but one are played first, then those on
    the axis before it, and so on, each with the set of its axis and all later ones: by induction,
    no coordinate is below its value in the game, because what is added is not below what was
    added there, and is >= 0. So only the numbers a need to be searched.
    """
    alive, points = starts.alive(), starts.points.flip(2) if last else starts.points
    left, lowest = alive, list[Tensor]()
    for axis in reversed(range(points.shape[2])):
        values = torch.where(left, points[..., axis], MAX_COORDINATE)
        lowest.insert(0, values.amin(1, keepdim=True))
        left = left & (values == lowest[0])
    above = torch.where(alive[..., None], points - torch.stack(lowest, 2), 0)
    # An axis with a value below 0 needs at least one move: how many are needed up to each axis.
    owed = (above.amin(1) < 0).cumsum(1)
    most = torch.full_like(starts.count, max_moves + 1)
    least, extra = torch.zeros_like(most), 0
    while len(open_ := (least < most).nonzero()[:, 0]):
        # Games with at most this many extra moves on each axis; others take ``longer``.
        longer = torch.full_like(most, max_moves + 1)
        start, played, later = open_, torch.zeros_like(open_), above[open_, :, -1]
        for axis in reversed(range(above.shape[2] - 1)):
            values = above[start, :, axis]
            moves = (-(values // later.clamp(min=1))).amax(1)
            played = played + moves
            if axis == 0:
                break
            total = played + owed[start, axis - 1]
            more = most[start] - total
            cut = more > extra + 1
            longer.scatter_reduce_(0, start[cut], total[cut] + extra + 1, "amin")
            more = more.clamp(0, extra + 1)
            if int(more.sum()) > GAMES:
                return least, most
            row = torch.arange(len(start)).repeat_interleave(more)
            added = torch.arange(len(row)) - (more.cumsum(0) - more)[row]
            start, played, moves = start[row], played[row] + added, moves[row] + added
            later = values[row] + (1 + moves)[:, None] * later[row]
        most = most.scatter_reduce(0, start, played, "amin")
        least, extra = torch.maximum(least, torch.minimum(longer, most)), 4 * extra or 1
    return least, most
