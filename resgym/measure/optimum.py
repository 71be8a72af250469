"""The greatest rho that any host can reach against an agent, from the same starts.

Against an agent that answers the position alone a host looks for the shortest game from each start.
`worst_case_moves` finds it for any such agent. One that looks at the host's set alone plays
matrices: every sequence of sets is a product of them, the same for all starts, and few of the
products differ, so that they are gone through once. Where a search is given up, a few lines that
look best give a game that is short enough for a bound.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from resgym.files import write_file
from resgym.game.actions import host_action_table
from resgym.game.rng import RowRandom
from resgym.game.spec import GameSpec
from resgym.game.state import GameState
from resgym.kernels.private_folder import private_folder
from resgym.measure.worst_case import (
    SHIFTED,
    STARTS_TOGETHER,
    after_every_set,
    distinct,
    worst_case_moves,
)
from resgym.players import (
    ChooseFirstAgent,
    ChooseLastAgent,
    GreedyPointsAgent,
    Player,
    ask_player,
)
from resgym.solver.players import OptimalAgent

FORMAT = 1
"""Of the files that are kept; goes up when figures of the same question may change."""

BY_SET = (ChooseFirstAgent, ChooseLastAgent)
"""Agents that look at the set alone."""

KEPT = (*BY_SET, GreedyPointsAgent)
"""Agents that their names and arguments tell all about, so that what is found can be kept."""

MATRICES = 300_000
"""Products of matrices looked at: hundreds of thousands of starts in three axes need no more."""

ANSWERS = 20_000
"""Answers that an agent is asked for from a start, before the walk is given up."""

ANSWERS_A_MOVE = 400
"""Answers for each move of the lines that are followed on after that."""

_EXACT = 2**20  # up to this coordinate sums of products are exact in float64
_BITS = 62


class Optimum(NamedTuple):
    """What no host can surpass, from the least that it can be to the greatest.

    Attributes:
        rho: games finished per move.
        moves: of all games together.
    """

    rho: tuple[float, float]
    moves: tuple[int, int]


def optimum(agent: Player, starts: GameState, spec: GameSpec, max_moves: int) -> Optimum | None:
    """The optimum against an agent; what is found for the scripted ones is kept on disk.

    Args:
        agent: plays ``spec``.
        starts: N positions.
        spec: the game.
        max_moves: games are cut after so many.

    Returns:
        None if there is none that could be found: the agent draws random numbers, remembers earlier
        moves, answers each row in its own way or asks the solver; the rule is not ``basic``; or no
        game can be finished.
    """
    starts = starts.to("cpu")
    if spec.rule != "basic" or type(agent) is OptimalAgent or hasattr(agent, "select"):
        return None
    question = repr((FORMAT, agent, spec, max_moves)).encode()
    digest = hashlib.sha256(question + starts.points.contiguous().numpy().tobytes()).hexdigest()
    name = f"{digest}.json"
    if type(agent) in KEPT:
        with suppress(OSError, RecursionError, TypeError, ValueError):
            return _read((private_folder("optima") / name).read_bytes())
    elif not answers_alike(agent, starts):
        return None
    least, most = shortest_games(agent, starts, spec, max_moves)
    # A start that is finished already is no success of the host.
    won = [int(((moves > 0) & (moves <= max_moves)).sum()) for moves in (least, most)]
    few, many = (int(moves.clamp(max=max_moves).sum()) for moves in (least, most))
    if not won[0]:
        return None
    found = Optimum((won[1] / many, won[0] / few), (few, many))
    if type(agent) in KEPT:
        with suppress(OSError):
            write_file(private_folder("optima") / name, json.dumps(found))
    return found


def _read(content: bytes) -> Optimum:
    """What a file holds; a TypeError or ValueError if that is something else."""
    (low, high), (least, most) = json.loads(content)
    if not (0 <= low <= high <= 1 and high > 0 and 0 < least <= most):
        raise ValueError("no optimum")
    return Optimum((float(low), float(high)), (int(least), int(most)))


def answers_alike(player: Player, starts: GameState) -> bool:
    """Whether it remembers nothing, and answers the same with other random numbers."""
    if getattr(player, "remembers", False):
        return False
    row = torch.arange(256)
    state, coords = starts.select(row % starts.num_games), None
    if player.role == "agent":
        sets = host_action_table(starts.points.shape[2])
        coords = sets[row % len(sets)]
    one, other = (
        ask_player(player, state, coords, RowRandom.for_episode(row, torch.full_like(row, episode)))
        for episode in (0, 1)
    )
    return bool((one == other).all())


def shortest_games(
    agent: Player, starts: GameState, spec: GameSpec, max_moves: int
) -> tuple[Tensor, Tensor]:
    """The moves of the shortest games from N starts, for an agent that answers the position alone.

    Returns:
        int64 [N] and int64 [N]: the least and the most that they can be, ``max_moves`` + 1 for all
        that is longer.
    """
    alive = starts.alive()
    width = int(starts.count.max())
    small = width <= _BITS and int(starts.points[alive].max()) <= _EXACT
    if type(agent) in BY_SET and small:
        least, given_up = _by_matrices(agent, starts, max_moves)
    else:
        most_positions = max(1, ANSWERS // spec.num_host_actions)
        parts = [
            worst_case_moves(agent, some, spec, max_moves, most_positions)
            for some in _parts(starts, STARTS_TOGETHER)
        ]
        least, given_up = map(torch.cat, zip(*parts, strict=True))
    most = least.clone()
    lines = max(4, ANSWERS_A_MOVE // spec.num_host_actions)
    some = starts.select(given_up)
    together = max(1, 80_000 // (lines * spec.num_host_actions))
    if some.num_games:
        found = [_by_lines(agent, part, spec, max_moves, lines) for part in _parts(some, together)]
        most[given_up] = torch.cat(found)
    return least, most


def _parts(starts: GameState, together: int) -> list[GameState]:
    firsts = range(0, starts.num_games, together)
    return [starts.select(slice(first, first + together)) for first in firsts]


def _by_matrices(agent: Player, starts: GameState, max_moves: int) -> tuple[Tensor, Tensor]:
    """As `worst_case_moves`, for an agent `BY_SET` and coordinates up to 2^20."""
    dimension, width = starts.points.shape[2], int(starts.count.max())
    sets = host_action_table(dimension)
    state = starts.select(torch.zeros(len(sets), dtype=torch.int64))
    axis = ask_player(agent, state, sets, RowRandom(torch.zeros_like(state.count)))
    moved = torch.eye(dtype=torch.int64, n=dimension).repeat(len(sets), 1, 1)
    moved[torch.arange(len(sets)), axis] = sets.to(torch.int64)
    # Where there is no point, one that is never least.
    points = torch.where(starts.alive()[..., None], starts.points, 2**50)[:, :width]
    points, bits = points.to(torch.float64), 2 ** torch.arange(width)[:, None]
    moves = torch.where(starts.finished(), 0, max_moves + 1)
    left = (moves > 0).nonzero()[:, 0]
    products = torch.eye(dimension, dtype=torch.int64)[None]
    seen = {products.numpy().tobytes()}
    for played in range(1, max_moves + 1):
        base = int(products.max()) * dimension + 1
        if not len(left) or len(seen) + len(products) * len(sets) > MATRICES or base > 2**30:
            moves[left] = played
            break
        products = (moved @ products[:, None]).flatten(0, 1)
        flat = products.flatten(1).numpy()
        words = flat.view(f"V{flat.itemsize * flat.shape[1]}")[:, 0].tolist()
        new = {word: place for place, word in enumerate(words) if word not in seen}
        seen.update(new)
        products = products[list(new.values())]
        # Few rows differ: the points at which one is least are found once.
        flat = products.flatten(0, 1).numpy()
        _, first, inverse = np.unique(flat, axis=0, return_index=True, return_inverse=True)
        rows = torch.from_numpy(flat[first]).to(torch.float64)
        row = torch.from_numpy(inverse.reshape(-1, dimension))
        ended = []
        for place in left.split(64):
            values = points[place] @ rows.T
            least = ((values == values.amin(1, keepdim=True)) * bits).sum(1).T.contiguous()
            over = least[row[:, 0]]
            for k in range(1, dimension):
                over &= least[row[:, k]]
            ended.append((over != 0).any(0))
        over = torch.cat(ended)
        moves[left[over]] = played
        left = left[~over]
    given_up = torch.zeros_like(moves, dtype=torch.bool)
    given_up[left] = moves[left] <= max_moves
    return moves, given_up


def _by_lines(
    agent: Player, starts: GameState, spec: GameSpec, max_moves: int, lines: int
) -> Tensor:
    """int64 [N]: moves of games that are found by following the smallest positions on."""
    spec = replace(spec, reposition=True) if type(agent) in SHIFTED else spec
    moves = torch.full_like(starts.count, max_moves + 1)
    state, start = starts, torch.arange(starts.num_games)
    for played in range(1, max_moves + 1):
        state, row, overflow = after_every_set(agent, state, spec)
        start, finished = start[row], state.finished() & ~overflow
        moves[start[finished]] = played
        going = (moves[start] > played) & ~overflow
        state, start = distinct(state.select(going), start[going])
        if not len(start):
            break
        alive = state.alive()[..., None]
        lowest = torch.where(alive, state.points, 2**59).amin(1, keepdim=True)
        size = torch.where(alive, state.points - lowest, 0).to(torch.float64).sum((1, 2))
        order = torch.from_numpy(np.lexsort((size.numpy(), start.numpy())))
        start = start[order]
        kept = torch.arange(len(start)) - torch.searchsorted(start, start) < lines
        state, start = state.select(order[kept]), start[kept]
    return moves
