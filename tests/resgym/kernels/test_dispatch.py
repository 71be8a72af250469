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
from resgym.kernels import dispatch, quickest_backend, resolve_backend
from resgym.players import make_host

SPEC = GameSpec()
CPU = torch.device("cpu")


def _forget() -> None:
    """What was found out about the machine, and what was warned of."""
    for known in (dispatch._found, dispatch._triton_fault, dispatch._warn):
        known.cache_clear()


@pytest.fixture
def anew() -> Iterator[None]:
    _forget()
    yield
    _forget()


def _without(patch: pytest.MonkeyPatch, name: str, folder: str, instead: Any = None) -> None:
    """As if a module were not installed, or were another one, when kernels import it next."""
    patch.setitem(sys.modules, name, instead)
    for each in list(sys.modules):
        module, _, last = each.rpartition(".")
        if module == f"resgym.kernels.{folder}":
            patch.delitem(sys.modules, each)
            patch.delattr(sys.modules[module], last, raising=False)


@pytest.fixture
def without_numba(anew: None, monkeypatch: pytest.MonkeyPatch) -> None:
    _without(monkeypatch, "numba", "cpu")


@pytest.fixture
def with_a_broken_numba(anew: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if numba were installed beside a NumPy that it does not know."""

    class Broken(ModuleType):
        def __getattr__(self, name: str) -> Any:
            raise ImportError("Numba needs NumPy 2.4 or less. Got NumPy 9.0.")

    _without(monkeypatch, "numba", "cpu", Broken("numba"))


@pytest.fixture
def without_triton(anew: None, monkeypatch: pytest.MonkeyPatch) -> None:
    _without(monkeypatch, "triton", "cuda")


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


@pytest.mark.parametrize(
    ("name", "runs_on", "device"),
    [
        ("numba", "the cpu", "meta"),
        pytest.param("triton", "cuda", "cpu", marks=needs_triton),
        pytest.param("triton", "cuda", "meta", marks=needs_triton),
    ],
)
def test_a_device_that_a_backend_does_not_know(name: str, runs_on: str, device: str) -> None:
    assert resolve_backend("auto", torch.device("meta"), SPEC).name == "torch"
    with pytest.raises(ValueError, match=f"'{name}' runs on {runs_on}, got device '{device}'"):
        resolve_backend(name, torch.device(device), SPEC)


@pytest.mark.parametrize(
    ("missing", "device", "problem"),
    [
        ("without_numba", CPU, r"'numba' needs numba \(pip install 'resgym\[fast\]'\)"),
        ("with_a_broken_numba", CPU, r"'numba' needs numba .*needs NumPy"),
        ("without_triton", CUDA, r"'triton' needs Triton \(pip install 'resgym\[gpu\]'\)"),
    ],
)
def test_what_is_not_there(
    missing: str, device: torch.device, problem: str, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue(missing)
    with pytest.warns(RuntimeWarning, match=f"^backend 'auto' is 'torch': {problem}") as seen:
        names = [resolve_backend("auto", device, SPEC).name for _ in range(2)]
    assert names == ["torch", "torch"]
    assert len(seen) == 1, "it is said once"
    with pytest.raises(ValueError, match=f"^backend {problem}") as error:
        resolve_backend(problem.split("'")[1], device, SPEC)
    assert "\n" not in str(error.value)


@pytest.mark.filterwarnings("ignore:backend 'auto' is 'torch'")
@pytest.mark.usefixtures("without_numba")
def test_everything_is_played_without_numba() -> None:
    env = HironakaVectorEnv(4)
    env.reset(seed=0)
    env.step(torch.zeros(4, dtype=torch.int64))
    state = env.games.position
    assert quickest_backend(CPU).name == "torch"
    assert make_host("zeillinger").act(state, None, env.games.rng(0)).shape == (4,)


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
