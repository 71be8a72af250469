"""The search that proves a position's value, on Python integers of any size.

A position's cost is 0 moves (or 1 node) once one point is left, and otherwise

    depth:  1 + min over the host's sets of the max over the agent's axes of the next cost
    nodes:  1 + min over the host's sets of the sum over the agent's axes of the next cost

The table keeps a lower bound for every canonical position met. Starting from the root, the search
follows the set whose bound is least: a position whose best bound has grown is raised and left, and
a position all of whose best answers are settled is settled. The root's bound is proved at every
moment, and it is the value once the root is settled. (Learning depth-first search: Bonet and
Geffner, "Learning Depth-First Search: A Unified Approach to Heuristic Search in Deterministic and
Non-Deterministic Settings", ICAPS 2006.) Along the stack bounds fall strictly, so positions that
recur do no harm.
"""

from __future__ import annotations

from typing import Protocol

from resgym.game.plain import Position, children

__all__ = ["NO_TREE", "STEPS_PER_EXPANSION", "PythonSearch", "Search"]

NO_TREE = 2**40
"""Cost of a position from which no tree of the allowed depth exists."""

STEPS_PER_EXPANSION = 100
"""A call of `advance` also returns after this many steps per expansion that it may make, so that it
returns in time even where bounds rise for long without new positions."""


class Search(Protocol):
    """A table of positions with the search on it; see `PythonSearch` for the arguments."""

    by_depth: bool

    @property
    def expanded(self) -> int:
        """Number of positions whose moves have been generated."""
        ...

    @property
    def size(self) -> int:
        """Number of positions in the table."""
        ...

    def add(self, position: Position, remaining: int = -1) -> int:
        """The number of a canonical position with so many moves remaining (-1: no limit)."""
        ...

    def advance(self, root: int, expansions: int) -> bool:
        """Searches on until the root is settled (True) or so many positions were expanded."""
        ...

    def bound(self, position: Position, remaining: int = -1) -> tuple[int, bool]:
        """The proved lower bound of a canonical position, and whether it is the value."""
        ...


class PythonSearch:
    """The table as a dictionary.

    Args:
        objective: ``depth`` or ``nodes``.
        cut_cost: cost of an unfinished position with no move remaining. `NO_TREE` forbids it; 3
            (no tree of an unfinished position has fewer nodes) gives a lower bound for all trees.

    Attributes:
        expanded: number of positions whose moves have been generated.
    """

    def __init__(self, objective: str, cut_cost: int = NO_TREE) -> None:
        self.by_depth = objective == "depth"
        self.cut_cost = cut_cost
        self.expanded = 0
        self._ids: dict[tuple[int, Position], int] = {}
        self._keys: list[tuple[int, Position]] = []
        self._lower: list[int] = []
        self._settled: list[bool] = []
        self._actions: list[list[tuple[int, ...]] | None] = []
        self._stack: list[int] = []

    @property
    def size(self) -> int:
        """Number of positions in the table."""
        return len(self._keys)

    def add(self, position: Position, remaining: int = -1) -> int:
        """The number of a canonical position with so many moves remaining (-1: no limit)."""
        key = (remaining, position)
        number = self._ids.get(key)
        if number is not None:
            return number
        finished = len(position) == 1
        if finished:
            cost = 0 if self.by_depth else 1
        elif remaining == 0:
            cost = self.cut_cost
        else:
            cost = 1 if self.by_depth else 3
        number = self._ids[key] = len(self._keys)
        self._keys.append(key)
        self._lower.append(cost)
        self._settled.append(finished or remaining == 0)
        self._actions.append(None)
        return number

    def bound(self, position: Position, remaining: int = -1) -> tuple[int, bool]:
        """The proved lower bound of a canonical position, and whether it is the value."""
        number = self.add(position, remaining)
        return self._lower[number], self._settled[number]

    def advance(self, root: int, expansions: int) -> bool:
        """Searches on until the root is settled or that many positions have been expanded.

        Returns:
            whether the root is settled.
        """
        end = self.expanded + expansions
        steps = expansions * STEPS_PER_EXPANSION
        lower, settled, stack = self._lower, self._settled, self._stack
        if stack and stack[0] != root:
            stack.clear()
        while not settled[root]:
            if not stack:
                stack.append(root)
            if steps <= 0:
                return False
            top = stack[-1]
            actions = self._actions[top]
            if actions is None:
                if self.expanded >= end:
                    return False
                actions = self._expand(top)
            steps -= 1
            least, best = NO_TREE, None
            for answers in actions:
                costs = [lower[answer] for answer in answers]
                cost = 1 + (max(costs) if self.by_depth else sum(costs))
                if cost < least:
                    least, best = cost, answers
            if best is None or least > lower[top]:
                lower[top] = least
                settled[top] = best is None
                stack.pop()
                continue
            for answer in best:
                if not settled[answer]:
                    stack.append(answer)
                    break
            else:
                settled[top] = True
                stack.pop()
        return True

    def _expand(self, number: int) -> list[tuple[int, ...]]:
        remaining, position = self._keys[number]
        after = remaining - 1 if remaining > 0 else -1
        actions: dict[tuple[int, ...], None] = {}
        for positions in children(position):
            answers = [self.add(answer, after) for answer in positions]
            # A maximum needs each answer once, a sum as often as it occurs.
            key = tuple(sorted(set(answers) if self.by_depth else answers))
            if number not in key:
                actions[key] = None
        self.expanded += 1
        self._actions[number] = list(actions)
        return self._actions[number] or []
