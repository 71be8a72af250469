"""Which backend a name stands for, with and without numba."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import torch

from resgym.envs import HironakaVectorEnv
from resgym.game import GameSpec
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
        if module == "resgym.kernels" and last not in ("dispatch", "step"):
            monkeypatch.delitem(sys.modules, name)
            monkeypatch.delattr(name, raising=False)
    dispatch._numba.cache_clear()
    yield
    dispatch._numba.cache_clear()


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
def test_without_numba(recwarn: pytest.WarningsRecorder) -> None:
    assert resolve_backend("auto", CPU, SPEC).name == "torch"
    assert not recwarn.list, "auto must fall back in silence"
    with pytest.raises(ValueError, match=r"backend 'numba' needs numba .*resgym\[fast\]") as error:
        resolve_backend("numba", CPU, SPEC)
    assert "\n" not in str(error.value)


@pytest.mark.usefixtures("without_numba")
def test_everything_is_played_without_numba() -> None:
    env = HironakaVectorEnv(4)
    env.reset(seed=0)
    env.step(torch.zeros(4, dtype=torch.int64))
    state = env.table.state
    assert host_actions("zeillinger", state, env.table.rng(0)) is None
    assert make_host("zeillinger").act(state, None, env.table.rng(0)).shape == (4,)


@pytest.mark.usefixtures("with_a_broken_numba")
def test_a_numba_that_does_not_work() -> None:
    with pytest.warns(RuntimeWarning, match=r"'auto' is 'torch' .*needs NumPy") as record:
        names = [resolve_backend("auto", CPU, SPEC).name for _ in range(2)]
    assert names == ["torch", "torch"]
    assert len(record) == 1
    with pytest.raises(ValueError, match=r"backend 'numba' needs numba .*needs NumPy"):
        resolve_backend("numba", CPU, SPEC)
