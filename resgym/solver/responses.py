"""Best responses: the longest game against a fixed host, the shortest against a fixed agent.

Only one seat chooses, so the positions that can occur form a graph. All starts share it, and the
fixed player is asked about whole batches of positions, in the order of points of the environments.
A position of a host that leads back to itself proves that play need not end.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count, islice
from typing import Any

import numpy as np
import torch

from resgym.game.spec import Axes, GameSpec, Role, action_axes, axes_to_coords, host_action_table
from resgym.game.state import GameState, canonical_state, state_from_points
from resgym.kernels.dispatch import resolve_backend
from resgym.players import Player, ask_exactly, own_attribute, player_name, resolve_player
from resgym.polynomials.monomials import Exponents
from resgym.solver.search import GOALS, Goal, Limits, Objective
from resgym.solver.solution import Solution, grown_tree
from resgym.trees.growth import Chart

NONE, OVER, LOST = 0, 1, 2
"""Numbers that stand for no position and for all finished positions; and see `Graph`."""

ROWS = 4096
"""Positions, at most, that a player is asked about together."""

QUICK, LINES, MANY = (200, 8), 32, 100
"""Budget and lines of a first walk against a host, see `Graph.walk`; the lines of the next walk,
against a host and against an agent."""

FOLLOWED = 200
"""Moves, at most, of the first walk."""

TOGETHER, ROOM = 100, 500_000
"""Starts that are explored together, and positions that are kept for the next ones."""


class Graph:
    """The positions that can occur against a fixed player, by number.

    Positions that the player declares to answer alike are one: those that differ by a shift or a
    factor. Other players are asked about the positions as they are, so endless play with growing
    coordinates never leads back.

    Attributes:
        rows: of each position the numbers ``after`` each axis, or each set against an agent; the
            ``size``, the sum of its coordinates; whether the player was ``asked``: 1, or `LOST` if
            a coordinate then exceeds 2^59.
        limits: of time and of positions.
        batch: positions that the player is asked about together, as many as the time limit allows.
        keys: the points of each position.
    """

    def __init__(self, player: Player, spec: GameSpec, limits: Limits | None = None) -> None:
        if spec.rule != "basic":
            raise ValueError(f"spec must have rule 'basic', got {spec.rule!r}")
        same = own_attribute(player, "invariant")
        self.player, self.is_host, self._scales = player, player.role == "host", same == "scale"
        self.spec = replace(spec, reposition=spec.reposition or bool(same))
        self.limits, self.batch = limits or Limits(), 64
        self._numbers, self.keys = {b"": NONE, b"over": OVER}, [b""] * 2
        width = spec.dimension if self.is_host else spec.num_host_actions
        self.rows = np.zeros(
            1024, [("after", np.int32, (width,)), ("size", float), ("asked", np.int8)]
        )

    def add(self, state: GameState, dropped: np.ndarray | bool = False) -> np.ndarray:
        """Return the numbers of positions, new ones or not; `NONE` for those dropped, bool [N]."""
        numbers, known = np.where(state.finished().numpy(), OVER, NONE), self._numbers
        chosen = (numbers == NONE) & np.logical_not(dropped)
        points = state.points.numpy()[chosen]
        if self._scales:
            divisor = np.gcd.reduce(points.clip(0), axis=(1, 2)).clip(1)
            points = np.where(points > 0, points // divisor[:, None, None], points)
        width = state.points.shape[1] * self.spec.dimension
        words = points.reshape(len(points), width).view(f"V{8 * width}")
        # No coordinate ends with this byte, only absent points do.
        numbers[chosen] = found = [
            known.setdefault(word.rstrip(b"\xff"), len(known)) for word in words.ravel().tolist()
        ]
        self.keys += [*islice(reversed(known), len(known) - len(self.keys))][::-1]
        if (more := len(known) - len(self.rows)) > 0:
            room = np.zeros(max(more, len(self.rows)), self.rows.dtype)
            self.rows = np.concatenate([self.rows, room])
        self.rows["size"][found] = points.clip(0).sum((1, 2), dtype=float)
        return numbers

    def begin(self, state: GameState) -> np.ndarray:
        """Return the numbers of any positions."""
        spec = replace(self.spec, max_num_points=state.points.shape[1])
        return self.add(canonical_state(state.columns(), state.count, spec))

    def positions(self, numbers: np.ndarray) -> GameState:
        """Return unfinished positions by their numbers."""
        keys = [self.keys[number] for number in numbers.tolist()]
        width, step = max(map(len, keys), default=0), 8 * self.spec.dimension
        words = bytearray(b"".join(key.ljust(width, b"\xff") for key in keys))
        points = torch.frombuffer(words, dtype=torch.int64)
        sizes = torch.tensor([len(key) // step for key in keys])
        return GameState(points.view(len(keys), -1, self.spec.dimension), sizes)

    def expand(self, numbers: np.ndarray) -> None:
        """Ask the player in unfinished positions, and add those that follow."""
        begun = time.perf_counter()
        state, sets = self.positions(numbers), host_action_table(self.spec.dimension)
        if self.is_host:
            coords = sets[ask_exactly(self.player, state, None)]
            row, column = coords.nonzero().unbind(1)
            state, coords, axis = state.select(row), coords[row], column
        else:
            pairs = torch.cartesian_prod(*map(torch.arange, (len(numbers), len(sets))))
            row, column = pairs.unbind(1)
            state, coords = state.select(row), sets[column]
            axis = ask_exactly(self.player, state, coords)
        spec = replace(self.spec, max_num_points=state.points.shape[1])
        kernels = resolve_backend("auto", state.device, spec)
        state, overflow = kernels.move(state, coords, axis, spec)
        before, lost = numbers[row.numpy()], overflow.numpy()
        # No other move matters where a host can end a game at once.
        ended = not self.is_host and np.isin(before, before[state.finished().numpy()])
        self.rows["after"][before, column.numpy()] = self.add(state, lost | ended)
        self.rows["asked"][numbers] = 1
        self.rows["asked"][before[lost]] = LOST
        is_quick = 16 * (time.perf_counter() - begun) < self.limits.seconds_left
        self.batch = min(2 * self.batch, ROWS) if is_quick else max(1, self.batch // 2)

    def walk(
        self,
        begins: np.ndarray,
        cut: float,
        budget: int,
        lines: int = LINES,
        going: np.ndarray | None = None,
    ) -> Iterator[np.ndarray]:
        """Yield the unfinished positions after each number of moves, once for each start.

        Args:
            begins: int64 [N], from `begin`.
            cut: games of more moves are not followed.
            budget: positions of a start; then ``lines`` are followed.
            lines: positions after each number of moves that are followed once the budget is spent:
                any against a host, against an agent the smallest.
            going: bool [N], the starts to follow. The caller may strike some out meanwhile; those
                whose shortest game against an agent is found are struck out here.
        """
        going = np.ones(len(begins), bool) if going is None else going
        start, level = going.nonzero()[0], begins[going]
        met = np.zeros(len(begins), int)
        for played in count():
            left = going[start] & (level > OVER)
            start, level = start[left], level[left]
            met += np.bincount(start, minlength=len(met))
            if not self.is_host:
                level = level[np.lexsort((self.rows["size"][level], start))]
            place = np.arange(len(start)) - np.searchsorted(start, start)
            left = (met <= budget)[start] | (place < lines)
            start, level = start[left], level[left]
            if not len(level):
                return
            yield level
            if played >= cut or not self._ask(start, level, going):
                return
            after = self.rows["after"][level]
            row, column = (after > OVER).nonzero()
            pairs = start[row] * len(self.keys) + after[row, column]
            start, level = np.divmod(torch.from_numpy(pairs).unique().numpy(), len(self.keys))

    def _ask(self, start: np.ndarray, level: np.ndarray, going: np.ndarray) -> bool:
        """Expand the positions of a level, see `walk`; return whether no limit was reached."""
        while not self.limits.reached(len(self.keys)):
            if not self.is_host:
                going[start[(self.rows["after"][level] == OVER).any(1)]] = False
            left = going[start] & (self.rows["asked"][level] == 0)
            start, level = start[left], level[left]
            if not len(level):
                return True
            open_ = torch.from_numpy(level).unique().numpy()  # NumPy's takes ten times as long
            # Most games end from small positions, and then others need not be asked about.
            self.expand(open_[np.argsort(self.rows["size"][open_])[: self.batch]])
        return False

    def bounds(
        self, begins: np.ndarray, goal: Goal = GOALS["depth"]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return lower and upper bounds for every position, by number.

        Against a host they are bounds of the longest game, or by ``goal`` of the nodes or leaves of
        its tree. Against an agent they are bounds of the shortest game; positions that are further
        from the end than all of ``begins`` get infinity.
        """
        rows = self.rows[: len(self.keys)]
        after = rows["after"]
        unknown = rows["asked"] != 1  # what may follow is not known, or not all of it
        unknown[[NONE, OVER]] = False
        value = np.full(len(rows), math.inf, object if goal.by_sum else float)
        value[OVER] = goal.finished
        if not self.is_host:
            # The game from an unknown position may end with the next move, or never.
            low = np.where(unknown, 1 + goal.finished, value)
            low = _distances(low, after, np.flatnonzero(rows["asked"] == 1), begins)
            return low, _distances(value, after, np.flatnonzero(rows["asked"]), begins)
        value[NONE] = 0
        waiting = np.arange(2, len(rows))
        # Positions that are never ready lead to a cycle, and stay infinite.
        while (ready := (value[after[waiting]] < math.inf).all(1)).any():
            level, waiting = waiting[ready], waiting[~ready]
            below = value[after[level]]
            total = goal.move + (below.sum(1) if goal.by_sum else below.max(1))
            # At least two finished positions follow, also where none is known yet.
            value[level] = np.maximum(total, goal.move + 2 * goal.finished)
            unknown[level] |= unknown[after[level]].any(1)
        return value, np.where(unknown, math.inf, value)

    def explore(
        self,
        begins: np.ndarray,
        cut: float,
        budget: int,
        note: Callable[[np.ndarray], object] = lambda bounds: None,
    ) -> tuple[np.ndarray, str | None]:
        """Explore until the games from N starts are known.

        Returns their bounds, float [N, 2], and why it stopped before, or None.

        Args:
            begins: int64 [N], from `begin`.
            cut: games of more moves are not followed.
            budget: positions of a start before its search is given up.
            note: called with the bounds now and then.
        """
        look, going, found = 0.0, np.ones(len(begins), bool), np.zeros((len(begins), 2))

        def is_open() -> np.ndarray:
            found[:] = np.stack(self.bounds(begins), 1)[begins]
            low, high = found.T
            note(found)
            if low.min() < math.inf:
                self.limits.report(int(low.min()), len(self.keys))
            return (low < high) & (low <= cut)

        quick = [(min(cut, FOLLOWED), *QUICK)] if self.is_host else []
        for walk in [*quick, (cut, budget, LINES if self.is_host else MANY)]:
            for _ in self.walk(begins, *walk, going=going):
                if self.is_host and len(self.keys) >= look:
                    look = 1.5 * len(self.keys) + 1000
                    going &= is_open()
            if not (going := is_open()).any():
                return found, None
        return found, self.limits.reached(len(self.keys)) or "overflow"


def _distances(
    value: np.ndarray, after: np.ndarray, waiting: np.ndarray, begins: np.ndarray
) -> np.ndarray:
    """Fill in and return the values of those ``waiting``: the moves to the nearest end.

    ``value`` holds the values of the ends. Stop once those of all ``begins`` are known.
    """
    while (value[begins] == math.inf).any():
        ready = (value[after[waiting]] < math.inf).any(1)
        if not ready.any():
            break
        level, waiting = waiting[ready], waiting[~ready]
        value[level] = 1 + value[after[level]].min(1)
    return value


def worst_cases(
    player: Player, starts: GameState, spec: GameSpec, cut: int, budget: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return bounds of the longest games against a host, of the shortest against an agent.

    Args:
        player: must be deterministic and without memory.
        starts: N positions.
        spec: the game.
        cut: games of more moves are not followed.
        budget: positions of a start before its search is given up.

    Returns:
        int64 [N]: moves at least, and int64 [N]: at most; ``cut`` + 1 for more.
    """
    graph, found = Graph(player, spec), []
    for rows in torch.arange(starts.num_games).split(TOGETHER):
        if len(graph.keys) > ROOM:
            graph = Graph(player, spec)
        found.append(graph.explore(graph.begin(starts.select(rows)), cut, budget)[0])
    least, most = torch.from_numpy(np.concatenate(found)).clamp(max=cut + 1).long().T
    return least, most


def best_response(
    position: Exponents,
    player: Any,
    role: Role,
    objective: Objective,
    max_depth: int | None,
    limits: Limits,
) -> Solution:
    """Return the longest game that an agent can force on a host, or its tree's nodes or leaves.

    Against an agent, return the shortest game that a host can have; its ``nodes`` are moves + 1.
    Arguments are those of `resgym.solve`.
    """
    if role == "agent" and objective == "leaves":
        raise ValueError("objective must be 'depth' or 'nodes' with an agent, got 'leaves'")
    spec = GameSpec(position.dimension, max(20, len(position)))
    name, player = player_name(player), resolve_player(player, role, spec, role)
    limits.started = time.perf_counter()  # not when the player was loaded
    graph, goal = Graph(player, spec, limits), GOALS[objective]
    begins = graph.begin(state_from_points([list(position)], spec))

    cut = math.inf if max_depth is None else max_depth
    _, stopped = graph.explore(begins, cut, limits.max_positions)
    moves, sets = graph.bounds(begins)[0], action_axes(position.dimension)
    low, high = (each[begins[0]] for each in graph.bounds(begins, goal))
    proved, whole = bool(low == high), role == "host" and goal.by_sum
    value = math.inf if low == math.inf else int(low)
    kind = "tree of" if whole else f"{'longest' if role == 'host' else 'shortest'} game against"
    title = f"{kind} {role} {name}: {position.pretty()}"

    def found(charts: Sequence[Chart]) -> np.ndarray:
        return graph.begin(state_from_points([list(chart.points) for chart in charts], spec))

    def choose(charts: Sequence[Chart]) -> list[Axes]:
        after = graph.rows["after"][found(charts)]
        if role == "agent":
            return [sets[number] for number in moves[after].argmin(1)]
        return [tuple(row.nonzero()[0].tolist()) for row in after]

    def respond(charts: Sequence[Chart], chosen: Sequence[Axes]) -> list[int]:
        if role == "host":
            after = graph.rows["after"][found(charts)]
            return np.where(after, moves[after], -1).argmax(1).tolist()
        coords = axes_to_coords(chosen, spec.dimension)
        return ask_exactly(player, graph.positions(found(charts)), coords).tolist()

    grow = partial(grown_tree, position, choose, title, respond=None if whole else respond)

    known = value if proved else None
    return Solution(
        known,
        value,
        known,
        proved,
        objective,
        limits.seconds,
        len(graph.keys),
        None if proved else stopped or "max_depth",
        grow if proved and value < math.inf else None,
    )
