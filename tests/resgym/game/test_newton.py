"""Newton vertices: tensors and integers against the rational oracle, on hard sets above all."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from resgym.game.newton import filter as newton_filter
from resgym.game.newton import vertices as newton
from resgym.game.newton.vertices import is_vertex, newton_vertices
from resgym.game.rng import RowRandom
from resgym.game.rules import random_starts
from resgym.game.spec import MAX_COORDINATE, GameSpec
from resgym.game.state import GameState, state_from_points
from tests.reference import rule
from tests.reference.polyhedron import mean_can_be_below
from tests.reference.polyhedron import newton_vertices as oracle
from tests.reference.rule import Position
from tests.resgym.game.point_families import FAMILIES, sample

# Sets to compare and their largest size, by dimension; the oracle's time decides. In the long
# test there are fifty times as many: 100,800.
SETS = {
    2: (432, 16),
    3: (576, 9),
    4: (396, 8),
    5: (216, 7),
    6: (144, 7),
    7: (72, 7),
    8: (72, 6),
    9: (54, 6),
    10: (54, 6),
}
LONG = 50


def sets_of(dimension: int, number: int, max_size: int, seed: object) -> list[Position]:
    source = random.Random(f"{seed} {dimension}")
    names = sorted(FAMILIES)
    return [
        sample(source, names[index % len(names)], dimension, max_size) for index in range(number)
    ]


def vertices_of(sets: Sequence[Position], dimension: int) -> list[Position]:
    rows = max(map(len, sets))
    spec = GameSpec(dimension, rows, polytope="newton")
    return state_from_points(sets, spec).point_lists()


def minimal_state(sets: Sequence[Position], dimension: int) -> GameState:
    return state_from_points(sets, GameSpec(dimension, max(map(len, sets))))


def expected_of(sets: Sequence[Position]) -> list[Position]:
    return [rule.canonical(points, "newton") for points in sets]


def compare(dimension: int, number: int, max_size: int, seed: object) -> int:
    """Compares sets with the oracle and returns how many points were minimal but no vertices."""
    sets = sets_of(dimension, number, max_size, seed)
    dropped = 0
    for start in range(0, number, 500):
        some = sets[start : start + 500]
        expected = expected_of(some)
        mismatches = [
            (points, ours, theirs)
            for points, ours, theirs in zip(
                some, vertices_of(some, dimension), expected, strict=True
            )
            if ours != theirs
        ]
        assert not mismatches, f"{len(mismatches)} sets differ, the first: {mismatches[0]}"
        minimal = minimal_state(some, dimension).count.sum()
        dropped += int(minimal) - sum(map(len, expected))
    return dropped


def test_two_thousand_sets():
    assert sum(number for number, _ in SETS.values()) >= 2000
    dropped = {
        dimension: compare(dimension, number, size, "quick")
        for dimension, (number, size) in SETS.items()
    }
    assert min(dropped.values()) >= 3
    assert sum(dropped.values()) >= 800


@pytest.mark.long
@pytest.mark.parametrize("dimension", SETS)
def test_a_hundred_thousand_sets(dimension):
    assert sum(number for number, _ in SETS.values()) * LONG >= 100_000
    number, size = SETS[dimension]
    assert compare(dimension, number * LONG, size, "long") >= 500


@pytest.mark.parametrize("dimension", [2, 3, 5])
def test_both_ways_give_the_same(dimension, monkeypatch):
    """All by integers, and as much as possible by floating point in chunks of every size."""
    state = minimal_state(sets_of(dimension, 180, 12, "ways"), dimension)
    asked = []
    monkeypatch.setattr(newton, "is_vertex", lambda *given: asked.append(1) or is_vertex(*given))
    monkeypatch.setattr(newton, "_FEW", 10**9)
    by_integers = newton_vertices(state.points, state.count)
    assert len(asked) == int(state.count[state.count >= 3].sum())
    monkeypatch.setattr(newton, "_FEW", 0)
    for chunk in (1, 500, 2**18):
        asked.clear()
        monkeypatch.setattr(newton, "_CPU_CHUNK", chunk)
        points, count = newton_vertices(state.points, state.count)
        assert torch.equal(points, by_integers[0])
        assert torch.equal(count, by_integers[1])
        # The families ask for more than floating point can prove, but not for much.
        assert 5 <= len(asked) <= 0.3 * int(state.count.sum())


def problems_of(state: GameState) -> tuple[torch.Tensor, torch.Tensor, list[bool]]:
    """The gaps and points of every problem of a state, and the true answers."""
    width = state.points.shape[1]
    row = torch.arange(width)
    game, own = (row < state.count[:, None]).nonzero(as_tuple=True)
    columns = state.points.permute(2, 1, 0)
    gaps = columns[:, :, game] - state.points[game, own].t()[:, None]
    present = (row[:, None] < state.count[game]) & (row[:, None] != own)
    sets = state.point_lists()
    truth = [
        sets[index][place] in oracle(sets[index])
        for index, place in zip(game.tolist(), own.tolist(), strict=True)
    ]
    return gaps, present, truth


@pytest.mark.parametrize("dimension", [2, 3, 4])
def test_a_broken_simplex_method_proves_nothing_false(dimension, monkeypatch):
    """Verdicts are checked for themselves: with senseless steps there are fewer, all right."""
    gaps, present, truth = problems_of(minimal_state(sets_of(dimension, 90, 8, 0), dimension))
    source = torch.Generator().manual_seed(0)
    pivot = newton_filter._pivot

    def broken(problems, point, axis, enters):
        others = torch.randint(gaps.shape[1], point.shape, generator=source)
        chosen = torch.rand(point.shape, generator=source) < 0.3
        after = pivot(problems, torch.where(chosen, others, point), axis, enters)
        noise = torch.rand(after.table.shape, generator=source, dtype=torch.float64)
        return after._replace(table=after.table * (0.5 + noise))

    honest = newton_filter.prove(gaps, present)
    monkeypatch.setattr(newton_filter, "_pivot", broken)
    misled = newton_filter.prove(gaps, present)
    limited = newton_filter.prove(gaps, present, max_pivots=1)
    counts = []
    for verdicts in (honest, misled, limited):
        decided = verdicts != newton_filter.UNDECIDED
        right = torch.tensor(truth) == (verdicts == newton_filter.VERTEX)
        assert bool(right[decided].all())
        counts.append(int(decided.sum()))
    assert counts[0] > max(counts[1:])
    assert min(counts[1:]) > 0.2 * len(truth)


def one_off(dimension: int, copies: int) -> None:
    """A point at the middle of the corners of a simplex, or one above or below it on an axis."""
    for high in (60, 10**9, MAX_COORDINATE):
        high -= high % dimension
        corners = [tuple(high * (i == j) for j in range(dimension)) for i in range(dimension)]
        middle = [high // dimension] * dimension
        for axis in range(dimension):
            for change in (-1, 0, 1):
                point = tuple(x + change * (j == axis) for j, x in enumerate(middle))
                expected = sorted(corners + [point] * (change < 0), reverse=True)
                got = vertices_of([[*corners, point]] * copies, dimension)
                assert got == [expected] * copies, "sets differ"


@pytest.mark.parametrize("dimension", [2, 3, 5, 10])
def test_a_point_one_above_on_or_below_a_face_of_huge_points(dimension):
    one_off(dimension, 1)
    one_off(dimension, 20)  # many at once go through floating point


@given(st.integers(2, 6), st.integers(1, 100), st.randoms(use_true_random=False))
def test_integers_of_any_size(dimension, bits, source):
    """`is_vertex` knows no bound, also where all other points are far away or equal on axes."""
    gaps = [
        [source.randint(-(2**bits), 2**bits) * source.randint(0, 1) for _ in range(dimension)]
        for _ in range(source.randint(0, 8))
    ]
    gaps = [row for row in gaps if any(row)]
    others = [tuple(row) for row in gaps]
    expected = not (others and mean_can_be_below(others, (0,) * dimension))
    assert is_vertex((0,) * dimension, others) == expected


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@pytest.mark.parametrize("dimension", [2, 3, 6])
def test_an_accelerator_gives_the_same(dimension):
    state = minimal_state(sets_of(dimension, 450, 12, "device"), dimension)
    expected = newton_vertices(state.points, state.count)
    points, count = newton_vertices(state.points.cuda(), state.count.cuda())
    assert points.is_cuda
    assert count.is_cuda
    assert torch.equal(points.cpu(), expected[0])
    assert torch.equal(count.cpu(), expected[1])
    spec, keys = GameSpec(dimension, 20, 20, polytope="newton"), torch.arange(500)
    starts = random_starts(spec, RowRandom(keys.cuda()))
    on_cpu = random_starts(spec, RowRandom(keys))
    assert torch.equal(starts.points.cpu(), on_cpu.points)
