"""Which backend a name stands for, with and without numba and Triton."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import torch

from resgym.envs import HironakaVectorEnv
from resgym.game import GameSpec, GameState, RowRandom
from resgym.kernels import dispatch, host_actions, resolve_backend
from resgym.players import make_host

SPEC = GameSpec()
CPU = torch.device("cpu")


@pytest.fixture
def without_numba(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if numba were not installed: its import fails."""
    yield from _without(monkeypatch, None)


@pytest.fixture
def with_a_broken_numba(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if numba were installed beside a NumPy that it does not know."""

    class Broken(ModuleType):
        def __getattr__(self, name: str) -> Any:
            raise ImportError("Numba needs NumPy 2.4 or less. Got NumPy 9.0.")

    yield from _without(monkeypatch, Broken("numba"))


def _without(monkeypatch: pytest.MonkeyPatch, instead: ModuleType | None) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "numba", instead)
    for name in list(sys.modules):
        module, _, last = name.rpartition(".")
        if module == "resgym.kernels.cpu":
            monkeypatch.delitem(sys.modules, name)
            monkeypatch.delattr(sys.modules[module], last, raising=False)
    _forget()
    yield
    _forget()


def _forget() -> None:
    """What was found out about the machine, and what was warned of."""
    for known in (dispatch._found, dispatch._triton_fault, dispatch._warn):
        known.cache_clear()


@pytest.fixture
def without_triton(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if Triton were not installed: its import fails."""
    monkeypatch.setitem(sys.modules, "triton", None)
    for name in list(sys.modules):
        package, _, last = name.rpartition(".")
        if package == "resgym.kernels.cuda":
            monkeypatch.delitem(sys.modules, name)
            monkeypatch.delattr(sys.modules[package], last, raising=False)
    _forget()
    yield
    _forget()


@pytest.fixture
def anew() -> Iterator[None]:
    _forget()
    yield
    _forget()


needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="triton is not installed"
)
no_cuda = pytest.mark.skipif(torch.cuda.is_available(), reason="the kernels work here")
CUDA = torch.device("cuda")


def test_an_unknown_name() -> None:
    with pytest.raises(ValueError, match=r"backend must be one of .*'numba'.*got 'fast'"):
        resolve_backend("fast", CPU, SPEC)


def test_auto_takes_the_compiled_one_on_the_cpu() -> None:
    pytest.importorskip("numba")
    assert resolve_backend("auto", CPU, SPEC).name == "numba"
    assert resolve_backend("torch", CPU, SPEC).name == "torch"


def test_an_accelerator() -> None:
    device = torch.device("meta")
    assert resolve_backend("auto", device, SPEC).name == "torch"
    with pytest.raises(ValueError, match="backend 'numba' runs on the cpu, got device 'meta'"):
        resolve_backend("numba", device, SPEC)


@pytest.mark.usefixtures("without_numba")
def test_without_numba() -> None:
    with pytest.warns(RuntimeWarning, match=r"'auto' is 'torch': 'numba' needs .*\[fast\]") as seen:
        names = [resolve_backend("auto", CPU, SPEC).name for _ in range(2)]
    assert names == ["torch", "torch"]
    assert len(seen) == 1, "it is said once"
    with pytest.raises(ValueError, match=r"backend 'numba' needs numba .*resgym\[fast\]") as error:
        resolve_backend("numba", CPU, SPEC)
    assert "\n" not in str(error.value)


@pytest.mark.filterwarnings("ignore:backend 'auto' is 'torch'")
@pytest.mark.usefixtures("without_numba")
def test_everything_is_played_without_numba() -> None:
    env = HironakaVectorEnv(4)
    env.reset(seed=0)
    env.step(torch.zeros(4, dtype=torch.int64))
    state = env.games.position
    assert host_actions("zeillinger", state, env.games.rng(0)) is None
    assert make_host("zeillinger").act(state, None, env.games.rng(0)).shape == (4,)


@pytest.mark.usefixtures("with_a_broken_numba")
def test_a_numba_that_does_not_work() -> None:
    with pytest.warns(RuntimeWarning, match=r"'auto' is 'torch': .*needs NumPy") as record:
        names = [resolve_backend("auto", CPU, SPEC).name for _ in range(2)]
    assert names == ["torch", "torch"]
    assert len(record) == 1
    with pytest.raises(ValueError, match=r"backend 'numba' needs numba .*needs NumPy"):
        resolve_backend("numba", CPU, SPEC)


@pytest.mark.usefixtures("without_triton")
def test_without_triton() -> None:
    with pytest.warns(RuntimeWarning, match=r"'auto' is 'torch': 'triton' needs .*\[gpu\]") as seen:
        names = [resolve_backend("auto", CUDA, SPEC).name for _ in range(2)]
    assert names == ["torch", "torch"]
    assert len(seen) == 1
    with pytest.raises(ValueError, match=r"backend 'triton' needs Triton .*resgym\[gpu\]") as error:
        resolve_backend("triton", CUDA, SPEC)
    assert "\n" not in str(error.value)


@needs_triton
def test_triton_on_a_device_that_it_does_not_know() -> None:
    with pytest.raises(ValueError, match="backend 'triton' runs on cuda, got device 'cpu'"):
        resolve_backend("triton", CPU, SPEC)
    with pytest.raises(ValueError, match="backend 'triton' runs on cuda, got device 'meta'"):
        resolve_backend("triton", torch.device("meta"), SPEC)


@needs_triton
@pytest.mark.usefixtures("anew")
def test_more_points_than_the_kernels_can_hold() -> None:
    spec = GameSpec(max_num_points=65)
    message = "plays max_num_points up to 64, got 65"
    with pytest.warns(RuntimeWarning, match=f"'auto' is 'torch': 'triton' {message}"):
        assert resolve_backend("auto", CUDA, spec).name == "torch"
    with pytest.raises(ValueError, match=f"backend 'triton' {message}"):
        resolve_backend("triton", CUDA, spec)


@needs_triton
@no_cuda
@pytest.mark.usefixtures("anew")
def test_a_device_on_which_the_kernels_fail() -> None:
    """A torch without CUDA stands for any driver, compiler or cache that does not work."""
    with pytest.warns(RuntimeWarning, match="'auto' is 'torch': 'triton' does not work on 'cuda'"):
        assert resolve_backend("auto", CUDA, SPEC).name == "torch"
    with pytest.raises(ValueError, match=r"backend 'triton' does not work on 'cuda': .+") as error:
        resolve_backend("triton", CUDA, SPEC)
    assert "\n" not in str(error.value)


@needs_triton
@pytest.mark.usefixtures("anew")
def test_kernels_that_give_wrong_results(monkeypatch: pytest.MonkeyPatch) -> None:
    from resgym.kernels.cuda import grids as triton_launch
    from resgym.kernels.cuda.backend import TritonBackend

    monkeypatch.setattr(triton_launch, "INTERPRETED", True)
    right = dispatch.random_starts
    monkeypatch.setattr(TritonBackend, "random_starts", staticmethod(right))
    assert resolve_backend("triton", CPU, SPEC).name == "triton"

    def wrong(spec: GameSpec, rng: RowRandom) -> GameState:
        state = right(spec, rng)
        points = state.points.clone()
        points[-1, 0, 0] += 1
        return GameState(points, state.count)

    _forget()
    monkeypatch.setattr(TritonBackend, "random_starts", staticmethod(wrong))
    with pytest.raises(ValueError, match=r"backend 'triton' does not work .*results are wrong"):
        resolve_backend("triton", CPU, SPEC)
