"""How good a player is: optimal moves in labelled positions, and depths in the worst case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from resgym.game.actions import host_action_table
from resgym.game.rng import RowRandom
from resgym.game.rules import move
from resgym.game.spec import GameSpec
from resgym.game.state import GameState, state_from_points
from resgym.players import Player, ask_player
from sb3_ext.studies.teach.examples import Examples

__all__ = ["chosen_moves", "held_out_accuracy", "optimal_choices", "worst_case_depths"]

_ROWS_AT_ONCE = 8192


def chosen_moves(player: Player, examples: Examples) -> Tensor:
    """What a player of the labelled seat chooses, int64 [M]: host actions or axes."""
    result = []
    for rows in torch.arange(len(examples)).split(_ROWS_AT_ONCE):
        batch = examples.select(rows)
        rng = RowRandom.for_episode(torch.zeros_like(rows), rows)
        state = GameState(batch.points, batch.count)
        result.append(ask_player(player, state, batch.coords, rng))
    return torch.cat(result)


def optimal_choices(player: Player, examples: Examples) -> Tensor:
    """Bool [M]: whether the move that a player chooses is an optimal one."""
    return examples.optimal.gather(1, chosen_moves(player, examples)[:, None])[:, 0]


def held_out_accuracy(player: Player, examples: Examples) -> dict[str, Any]:
    """The share of positions, which were not taught, in which a player's move is an optimal one.

    Returns:
        ``positions``, ``accuracy``, and the same two ``by_count`` (of points) and ``by_value`` (the
        moves or nodes under optimal play), each a dict by number.
    """
    right = optimal_choices(player, examples)

    def share(chosen: Tensor) -> dict[str, Any]:
        return {"positions": int(chosen.sum()), "accuracy": float(right[chosen].double().mean())}

    def by(numbers: Tensor) -> dict[int, Any]:
        return {number: share(numbers == number) for number in numbers.unique().tolist()}

    whole = share(torch.ones_like(right))
    return {**whole, "by_count": by(examples.count), "by_value": by(examples.value)}


def worst_case_depths(
    host: Player, starts: Sequence[Any], max_depth: int = 40, max_width: int = 5000
) -> list[int | None]:
    """Moves on the longest branch of a host's tree, for many starts at once.

    The same as ``resgym.resolution_tree(start, host).depth`` for hosts who look at the state only;
    all trees grow together, and positions that a tree meets twice on one level are played once.

    Args:
        host: plays the same set in the same position always.
        starts: lists of points in three axes.
        max_depth: trees with a longer branch are given up.
        max_width: trees with more different positions on one level are given up.

    Returns:
        A number per start; None where the tree was given up or a coordinate would pass 2^59.
    """
    rows = max([2, *map(len, starts)])
    spec = GameSpec(3, rows)
    state = state_from_points([[tuple(p) for p in start] for start in starts], spec)
    tree = torch.arange(len(starts))
    depth = torch.zeros(len(starts), dtype=torch.int64)
    given_up = torch.zeros(len(starts), dtype=torch.bool)
    table = host_action_table(spec.dimension)
    for level in range(max_depth + 1):
        alive = ~state.finished() & ~given_up[tree]
        state, tree = state.select(alive), tree[alive]
        if not len(tree):
            break
        if level == max_depth:
            given_up[tree] = True
            break
        depth[tree] = level + 1
        rng = RowRandom(torch.zeros_like(state.count))
        coords = table[ask_player(host, state, None, rng)]
        row, axis = coords.nonzero(as_tuple=True)
        tree = tree[row]
        state, overflow = move(state.select(row), coords[row], axis, spec)
        given_up[tree[overflow]] = True
        distinct = torch.cat([tree[:, None], state.points.flatten(1)], 1).unique(dim=0)
        tree, points = distinct[:, 0], distinct[:, 1:].view(-1, *state.points.shape[1:])
        state = GameState(points, (points[:, :, 0] >= 0).sum(1))
        given_up |= tree.bincount(minlength=len(starts)) > max_width
    return [None if up else moves for moves, up in zip(depth.tolist(), given_up, strict=True)]
