"""What is said of numba's operations alone: refusals, and the choices of scripted hosts."""

from __future__ import annotations

import pytest
import torch

from resgym.game import GameSpec
from resgym.game.spec import MAX_COORDINATE
from resgym.kernels import quickest_backend, resolve_backend
from resgym.players import make_host
from tests.resgym.kernels.operations import positions, rows

pytest.importorskip("numba")

CPU = torch.device("cpu")


@pytest.mark.parametrize("axis", [-1, 3])
def test_an_axis_outside(axis: int) -> None:
    spec = GameSpec(3, 4)
    fast = resolve_backend("numba", CPU, spec)
    state = positions(spec, 2, torch.arange(9), "cpu")
    with pytest.raises(IndexError, match=rf"axis must be in 0\.\.2, got {axis}"):
        fast.move(state, torch.ones(2, 3, dtype=torch.bool), torch.tensor([0, axis]), spec)


@pytest.mark.parametrize("name", ["zeillinger", "zeillinger_lex"])
@pytest.mark.parametrize(("dimension", "num_points"), [(2, 5), (3, 20), (5, 9), (10, 6)])
@pytest.mark.parametrize("top", [3, 30, MAX_COORDINATE])
def test_zeillingers_choice(name: str, dimension: int, num_points: int, top: int) -> None:
    spec = GameSpec(dimension, num_points)
    drawn = rows(200, 3).integers(min(top, 2**31), n=20) * (top // min(top, 2**31))
    state = positions(spec, 200, drawn.unique(), "cpu")
    host, rng = make_host(name), rows(200, 0)
    expected = host.choose(state)
    found = quickest_backend(CPU).host_actions(name, state, rng)
    assert found is not None
    assert torch.equal(expected, found)
    assert torch.equal(expected, host.act(state, None, rng))


@pytest.mark.parametrize("name", ["random", "random_pair", "all_coord"])
@pytest.mark.parametrize("dimension", [2, 3, 7])
def test_hosts_that_do_not_look(name: str, dimension: int) -> None:
    state = positions(GameSpec(dimension, 3), 100, torch.arange(4), "cpu")
    found = quickest_backend(CPU).host_actions(name, state, rows(100, 5))
    assert found is not None
    assert torch.equal(found, make_host(name).act(state, None, rows(100, 5)))


def test_a_host_that_is_not_compiled() -> None:
    state = positions(GameSpec(), 4, torch.arange(4), "cpu")
    assert quickest_backend(CPU).host_actions("spivakovsky", state, rows(4, 0)) is None
    assert quickest_backend(CPU).host_actions(None, state, rows(4, 0)) is None
