"""Plays the tensor rule and the plain-Python rule side by side and compares every position."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from resgym.game.spec import MAX_COORDINATE, GameSpec
from resgym.game.state import GameState, state_from_points
from resgym.kernels import Backend
from tests.reference import rule
from tests.resgym.game import splitmix

MEMBERS = 8  # kinds of start below


def random_points(source: random.Random, spec: GameSpec, kind: int) -> rule.Position:
    """A start with 1 to P points; the kinds are the hard cases of the rule."""
    dimension = spec.dimension
    count = source.randint(1, spec.max_num_points)

    def point(high: int, low: int = 0) -> rule.Point:
        return tuple(source.randint(low, high) for _ in range(dimension))

    if kind == 0:  # every row in use
        return [point(spec.max_value) for _ in range(spec.max_num_points)]
    if kind == 1:  # ties on most axes
        return [point(2) for _ in range(count)]
    if kind == 2:  # repeated points
        few = [point(spec.max_value) for _ in range(max(1, count // 3))]
        return [source.choice(few) for _ in range(count)]
    if kind == 3:  # zero rows and points on the axes
        axes = [tuple(source.choice((0, 0, x)) for x in point(9)) for _ in range(count)]
        return [*axes[1:], (0,) * dimension] if source.random() < 0.3 else axes
    if kind == 4:  # a single point
        return [point(spec.max_value)]
    if kind == 5:  # a sum or two below the bound, so that moves pass it
        scale = MAX_COORDINATE // source.choice((1, 2, 3, dimension))
        return [point(scale, scale - source.choice((1, 10, scale))) for _ in range(count)]
    if kind == 6:  # every size from 1 to 2^59
        return [
            tuple(2 ** source.randint(0, 59) - source.randint(0, 1) for _ in range(dimension))
            for _ in range(count)
        ]
    return [point(spec.max_value) for _ in range(count)]


@dataclass
class Tally:
    """What a comparison went through, so that a test can tell that it met the hard cases."""

    moves: int = 0
    overflows: int = 0
    illegal: int = 0
    finished_asked: int = 0
    endings: int = 0

    def add(self, other: Tally) -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


def random_move(source: random.Random, sets: list[rule.Axes], dimension: int) -> tuple:
    """Axes and axis; one in twenty is illegal: a set too small, or an axis outside the set."""
    if source.random() < 0.05:
        size = source.randint(0, dimension - 1)
        axes = tuple(sorted(source.sample(range(dimension), size)))
        outside = [axis for axis in range(dimension) if axis not in axes]
        return axes, source.choice(outside if size > 1 else range(dimension))
    axes = source.choice(sets)
    return axes, source.choice(axes)


def play(
    backends: Sequence[Backend],
    spec: GameSpec,
    source: random.Random,
    num_games: int,
    num_moves: int,
) -> Tally:
    """Plays up to ``num_moves`` moves in each of ``num_games`` games; nothing may differ.

    The first backend's positions are compared with the reference, those of the others with the
    first backend's, bit by bit.

    A finished game is asked for one more move, which is compared but not counted, and leaves.
    """
    sets = rule.host_actions(spec.dimension)
    starts = [random_points(source, spec, index % MEMBERS) for index in range(num_games)]
    options = (spec.polytope, spec.reposition)
    positions = [rule.canonical(points, *options) for points in starts]
    state = state_from_points(starts, spec)
    assert_same(state, positions)
    tally = Tally()
    for _ in range(num_moves):
        going = [not rule.is_finished(points) for points in positions]
        chosen = [random_move(source, sets, spec.dimension) for _ in positions]
        coords = torch.zeros(len(positions), spec.dimension, dtype=torch.bool)
        rows = [(row, axis) for row, (axes, _) in enumerate(chosen) for axis in axes]
        if rows:
            coords[tuple(torch.tensor(rows).t())] = True
        axis = torch.tensor([each for _, each in chosen])
        kept = state.points.clone(), state.count.clone()
        (after, overflow), *others = [each.move(state, coords, axis, spec) for each in backends]
        for backend, (other, other_overflow) in zip(backends[1:], others, strict=True):
            assert torch.equal(other.points, after.points), backend.name
            assert torch.equal(other.count, after.count), backend.name
            assert torch.equal(other_overflow, overflow), backend.name
        assert torch.equal(kept[0], state.points)
        assert torch.equal(kept[1], state.count)
        expected_overflow = []
        for row, (axes, each) in enumerate(chosen):
            before = positions[row]
            positions[row] = rule.move(before, axes, each, *options)
            expected_overflow.append(rule.overflows(before, axes, each))
            tally.moves += going[row]
            tally.finished_asked += not going[row]
            tally.illegal += not rule.is_legal(axes, each)
            tally.endings += going[row] and rule.is_finished(positions[row])
        tally.overflows += sum(expected_overflow)
        assert overflow.tolist() == expected_overflow
        assert_same(after, positions)
        state = after.select(torch.tensor(going))
        positions = [points for points, keep in zip(positions, going, strict=True) if keep]
        if not positions:
            break
    return tally


def assert_same(state: GameState, positions: list[rule.Position]) -> None:
    """The state is exactly these positions, in canonical layout."""
    assert state.points.dtype == state.count.dtype == torch.int64
    width = state.points.shape[1]
    counts = [len(points) for points in positions]
    assert state.count.tolist() == counts
    assert bool((state.points[torch.arange(width) >= state.count[:, None]] == -1).all())
    flat = [x for points in positions for point in points for x in point]
    alive = state.points[torch.arange(width) < state.count[:, None]].flatten().tolist()
    if alive != flat:
        row = next(r for r, got in enumerate(state.point_lists()) if got != positions[r])
        raise AssertionError(
            f"row {row}: {state.point_lists()[row]} is not the reference's {positions[row]}"
        )


def drawn(spec: GameSpec, key: int, attempt: int) -> rule.Position:
    """The points of one attempt: words of the key split by the attempt's number."""
    words = splitmix.words(splitmix.absorb(key, attempt))
    values = [splitmix.integer(word, spec.max_value + 1) for word in _take(words, spec)]
    size = spec.dimension
    points = [tuple(values[i : i + size]) for i in range(0, len(values), size)]
    return rule.canonical(points, reposition=spec.reposition)


def _take(words, spec: GameSpec) -> list[int]:
    return list(itertools.islice(words, spec.max_num_points * spec.dimension))


def reference_start(spec: GameSpec, key: int) -> tuple[rule.Position, int]:
    """The start and how many draws it took."""
    for attempt in range(spec.start_attempts):
        points = drawn(spec, key, attempt)
        if not rule.is_finished(points):
            return points, attempt + 1
    axes = range(spec.dimension)
    return [tuple(int(j == axis) for j in axes) for axis in (0, 1)], spec.start_attempts
