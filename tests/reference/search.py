"""Optimal play by trying everything, in plain Python on the reference rule.

No table, no symmetry, no bounds but the obvious ones: slow, and independent of the package.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.reference.rule import Axes, Position, host_actions, is_finished, move

Host = Callable[[Position], Axes]
Agent = Callable[[Position, Axes], int]


def resolves_within(points: Position, moves: int) -> bool:
    """Whether some host ends the game within so many moves whatever the agent does."""
    if is_finished(points):
        return True
    if moves == 0:
        return False
    return any(
        all(resolves_within(move(points, axes, axis), moves - 1) for axis in axes)
        for axes in host_actions(len(points[0]))
    )


def least_depth(points: Position) -> int:
    """Moves on the longest branch of the shallowest tree."""
    moves = 0
    while not resolves_within(points, moves):
        moves += 1
    return moves


def nodes_within(points: Position, budget: int) -> int | None:
    """Nodes of the smallest tree, or None if every tree has more than ``budget``."""
    if budget < 1:
        return None
    if is_finished(points):
        return 1
    best = None
    for axes in host_actions(len(points[0])):
        answers = [move(points, axes, axis) for axis in axes]
        # A finished position is a tree of one node, any other of three at least.
        needed = [1 if is_finished(answer) else 3 for answer in answers]
        total: int | None = 1
        for place, answer in enumerate(answers):
            nodes = nodes_within(answer, budget - total - sum(needed[place + 1 :]))
            if nodes is None:
                total = None
                break
            total += nodes
        if total is not None:
            best, budget = total, total - 1
    return best


def least_nodes(points: Position) -> int:
    """Nodes of the smallest tree, root counted."""
    budget = 1
    while (nodes := nodes_within(points, budget)) is None:
        budget += 1
    return nodes


def tree_of(points: Position, host: Host) -> tuple[int, int]:
    """Depth and number of nodes of a host's tree (which must be finite)."""
    if is_finished(points):
        return 0, 1
    axes = host(points)
    below = [tree_of(move(points, axes, axis), host) for axis in axes]
    return 1 + max(depth for depth, _ in below), 1 + sum(nodes for _, nodes in below)


def ends_within(points: Position, agent: Agent, moves: int) -> bool:
    """Whether some sequence of sets ends the game against this agent within so many moves."""
    if is_finished(points):
        return True
    if moves == 0:
        return False
    return any(
        ends_within(move(points, axes, agent(points, axes)), agent, moves - 1)
        for axes in host_actions(len(points[0]))
    )


def shortest_game(points: Position, agent: Agent) -> int:
    """Moves of the shortest game against an agent."""
    moves = 0
    while not ends_within(points, agent, moves):
        moves += 1
    return moves
