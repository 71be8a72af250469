"""The compiled operations against the torch reference, bit for bit, along random games."""

from __future__ import annotations

import pytest
import torch

from resgym.game import GameSpec, GameState, RowRandom, Stream, host_action_table, move
from resgym.game.observation import observe_points
from resgym.game.spec import MAX_COORDINATE
from resgym.game.starts import random_starts
from resgym.game.state import state_from_points
from resgym.kernels import host_actions, resolve_backend
from resgym.players import make_host

pytest.importorskip("numba")

SIZES = [(2, 1), (2, 20), (3, 2), (3, 20), (4, 7), (5, 50), (7, 12), (10, 3), (10, 20)]
CPU = torch.device("cpu")


def rows(num_games: int, step: int, stream: int = Stream.USER, seed: int = 0) -> RowRandom:
    row = torch.arange(num_games)
    return RowRandom.for_step(row + seed, row * 0, row * 0 + step, stream)


def same(a: GameState, b: GameState) -> bool:
    return torch.equal(a.points, b.points) and torch.equal(a.count, b.count)


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """Floats as integers, so that 0 and -0 differ and nothing is rounded."""
    return tensor.view(torch.int32)


def given_positions(spec: GameSpec, num_games: int, values: torch.Tensor) -> GameState:
    """Positions with coordinates out of a list; a short list makes ties and equal points."""
    shape = (num_games, spec.max_num_points * spec.dimension)
    drawn = values[rows(num_games, 7).integers(len(values), n=shape[1])]
    return state_from_points(drawn.view(num_games, spec.max_num_points, spec.dimension), spec)


def play_lockstep(spec: GameSpec, state: GameState, moves: int) -> int:
    """Plays random moves on both backends, illegal ones among them; returns how many overflowed."""
    fast = resolve_backend("numba", CPU, spec)
    num_games, dimension = state.num_games, spec.dimension
    table = host_action_table(dimension)
    overflowed = 0
    for step in range(moves):
        assert torch.equal(bits(observe_points(state)), bits(fast.observe_points(state, True)))
        assert torch.equal(
            bits(observe_points(state, False)), bits(fast.observe_points(state, False))
        )
        coords = table[rows(num_games, step, Stream.HOST).integers(len(table))]
        # Some sets are emptied or cut to one axis: such moves must change nothing.
        coords = coords & (rows(num_games, step, 4).integers(9, n=dimension) > 0)
        axis = rows(num_games, step, Stream.AGENT).integers(dimension)
        kept = state.select(slice(None))
        expected, expected_overflow = move(state, coords, axis, spec)
        found, overflow = fast.move(state, coords, axis, spec)
        assert same(state, kept), "the given state was written to"
        assert same(expected, found)
        assert torch.equal(expected_overflow, overflow)
        overflowed += int(overflow.sum())
        state = found
    return overflowed


@pytest.mark.parametrize(("dimension", "num_points"), SIZES)
@pytest.mark.parametrize("reposition", [False, True])
def test_random_games(dimension: int, num_points: int, reposition: bool) -> None:
    spec = GameSpec(dimension, num_points, reposition=reposition)
    start = given_positions(spec, 64, torch.arange(21))
    play_lockstep(spec, start, 25)


@pytest.mark.parametrize(("dimension", "num_points"), SIZES)
def test_starts(dimension: int, num_points: int) -> None:
    for max_value in (1, 20, 2**31 - 2):
        spec = GameSpec(dimension, num_points, max_value)
        fast = resolve_backend("numba", CPU, spec)
        rng = rows(50, 0, Stream.START, seed=3)
        if num_points == 1:
            with pytest.raises(ValueError, match="max_num_points must be at least 2"):
                fast.random_starts(spec, rng)
            continue
        assert same(random_starts(spec, rng), fast.random_starts(spec, rng))


@pytest.mark.parametrize("reposition", [False, True])
@pytest.mark.parametrize(("dimension", "num_points"), [(3, 8), (3, 50), (6, 9), (10, 20)])
def test_values_near_the_bound(dimension: int, num_points: int, reposition: bool) -> None:
    top = MAX_COORDINATE
    values = torch.tensor([2**31, 2**53 + 1, top // 2, top // 2 + 1, top - 1, top])
    spec = GameSpec(dimension, num_points, reposition=reposition)
    assert play_lockstep(spec, given_positions(spec, 64, values), 12) > 0


@pytest.mark.parametrize("dimension", [2, 3, 5])
def test_ties_and_equal_points(dimension: int) -> None:
    spec = GameSpec(dimension, 30)
    play_lockstep(spec, given_positions(spec, 128, torch.tensor([0, 1, 2])), 10)


def test_memory_that_is_not_contiguous() -> None:
    spec = GameSpec(3, 6)
    fast = resolve_backend("numba", CPU, spec)
    state = given_positions(spec, 16, torch.arange(9))
    strided = GameState(
        state.points.permute(2, 1, 0).contiguous().permute(2, 1, 0),
        state.count.repeat(2, 1).t()[:, 0],
    )
    one = state.select(slice(0, 1))
    expanded = GameState(one.points.expand(16, -1, -1), one.count.expand(16))
    coords = torch.ones(3, 16, dtype=torch.bool).t()
    axis = torch.tensor([[0, 9], [1, 9], [2, 9], [0, 9]]).repeat(4, 1)[:, 0]
    for each in (strided, expanded):
        expected, _ = move(each, coords, axis, spec)
        assert same(expected, fast.move(each, coords, axis, spec)[0])
        assert torch.equal(observe_points(each), fast.observe_points(each, True))


def test_no_games() -> None:
    spec = GameSpec(3, 4)
    fast = resolve_backend("numba", CPU, spec)
    none = GameState(torch.empty(0, 4, 3, dtype=torch.int64), torch.empty(0, dtype=torch.int64))
    coords, axis = torch.empty(0, 3, dtype=torch.bool), torch.empty(0, dtype=torch.int64)
    after, overflow = fast.move(none, coords, axis, spec)
    assert after.points.shape == (0, 4, 3)
    assert overflow.shape == (0,)
    assert fast.observe_points(none, True).shape == (0, 4, 3)


@pytest.mark.parametrize("axis", [-1, 3])
def test_an_axis_outside(axis: int) -> None:
    spec = GameSpec(3, 4)
    fast = resolve_backend("numba", CPU, spec)
    state = given_positions(spec, 2, torch.arange(9))
    with pytest.raises(IndexError, match=rf"axis must be in 0\.\.2, got {axis}"):
        fast.move(state, torch.ones(2, 3, dtype=torch.bool), torch.tensor([0, axis]), spec)


@pytest.mark.parametrize("name", ["zeillinger", "zeillinger_lex"])
@pytest.mark.parametrize(("dimension", "num_points"), [(2, 5), (3, 20), (5, 9), (10, 6)])
@pytest.mark.parametrize("top", [3, 30, MAX_COORDINATE])
def test_zeillingers_choice(name: str, dimension: int, num_points: int, top: int) -> None:
    spec = GameSpec(dimension, num_points)
    drawn = rows(200, 3).integers(min(top, 2**31), n=20) * (top // min(top, 2**31))
    state = given_positions(spec, 200, drawn.unique())
    host, rng = make_host(name), rows(200, 0)
    expected = host.choose(state)
    found = host_actions(name, state, rng)
    assert found is not None
    assert torch.equal(expected, found)
    assert torch.equal(expected, host.act(state, None, rng))


@pytest.mark.parametrize("name", ["random", "random_pair", "all_coord"])
@pytest.mark.parametrize("dimension", [2, 3, 7])
def test_hosts_that_do_not_look(name: str, dimension: int) -> None:
    state = given_positions(GameSpec(dimension, 3), 100, torch.arange(4))
    found = host_actions(name, state, rows(100, 5))
    assert found is not None
    assert torch.equal(found, make_host(name).act(state, None, rows(100, 5)))


def test_a_host_that_is_not_compiled() -> None:
    state = given_positions(GameSpec(), 4, torch.arange(4))
    assert host_actions("spivakovsky", state, rows(4, 0)) is None
    assert host_actions(None, state, rows(4, 0)) is None
