"""Which backend a name stands for, with and without numba and Triton."""

import importlib.util
import sys
import warnings

import pytest
import torch

from resgym.envs.environments import HironakaVectorEnv
from resgym.game.spec import GameSpec
from resgym.kernels import dispatch
from resgym.kernels.dispatch import Checked, resolve_backend
from tests.resgym.envs.helpers import asked

SPEC = GameSpec()
CPU = torch.device("cpu")


@pytest.fixture
def without(request, monkeypatch):
    """As if a module were not installed when kernels import it next; None misses nothing."""
    known = (dispatch._load, dispatch._automatic, dispatch._warn)
    for each in known:
        each.cache_clear()
    name, folder = request.param
    if name:
        monkeypatch.setitem(sys.modules, name, None)
    for each in list(sys.modules):
        module, _, last = each.rpartition(".")
        if name and module == f"resgym.{folder}":
            monkeypatch.delitem(sys.modules, each)
            monkeypatch.delattr(sys.modules[module], last, raising=False)
    yield
    for each in known:
        each.cache_clear()


needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="triton is not installed"
)
CUDA = torch.device("cuda")


def test_auto_takes_the_compiled_one_on_the_cpu():
    pytest.importorskip("numba")
    assert resolve_backend("auto", CPU, SPEC).name == "numba"
    assert resolve_backend("torch", CPU, SPEC).name == "torch"


@pytest.mark.parametrize(
    ("name", "runs_on", "device"),
    [("numba", "cpu", "meta"), pytest.param("triton", "cuda", "cpu", marks=needs_triton)],
)
def test_a_device_that_a_backend_does_not_know(name, runs_on, device):
    assert resolve_backend("auto", torch.device("meta"), SPEC).name == "torch"
    with pytest.raises(ValueError, match=f"'{name}' runs on {runs_on}, got device '{device}'"):
        resolve_backend(name, torch.device(device), SPEC)


@pytest.mark.parametrize(
    ("without", "device", "rows", "problem"),
    [
        (("numba", "kernels.cpu"), CPU, 20, r"'numba' needs numba \(pip install .*\[fast\]'\)"),
        (("triton", "cuda"), CUDA, 20, r"'triton' needs Triton \(pip install 'resgym\[gpu\]'\)"),
        pytest.param(
            (None, ""), CUDA, 65, "'triton' plays max_num_points up to 64", marks=needs_triton
        ),
    ],
    indirect=["without"],
)
def test_what_is_not_there_or_too_large(without, device, rows, problem):
    spec = GameSpec(max_num_points=rows)
    with pytest.warns(RuntimeWarning, match=f"^backend 'auto' is 'torch': {problem}") as seen:
        names = [resolve_backend("auto", device, spec).name for _ in range(2)]
    assert names == ["torch", "torch"]
    assert len(seen) == 1, "it is said once"
    with pytest.raises(ValueError, match=rf"^backend {problem}[^\n]*$"):
        resolve_backend(problem.split("'")[1], device, spec)


@pytest.mark.parametrize(
    ("seat", "opponent", "mode"),
    [("host", "random", "SAME_STEP"), ("agent", asked, "NEXT_STEP"), ("both", None, "DISABLED")],
)
def test_a_right_backend_is_found_right(seat, opponent, mode):
    pytest.importorskip("numba")
    sizes = {"max_num_points": 6, "max_value": 9, "autoreset_mode": mode, "opponent": opponent}
    env = HironakaVectorEnv(2, seat=seat, **sizes)
    env.backend = Checked(resolve_backend("numba", CPU, SPEC))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env.reset(seed=0)


@pytest.mark.parametrize("fault", ["reward", "points", "raises"])
def test_a_fault_is_found_before_anything_is_played(fault):
    pytest.importorskip("numba")
    numba = resolve_backend("numba", CPU, SPEC)

    class Faulty(type(numba)):
        def step(self, *given):
            result = super().step(*given)
            if fault == "raises":
                raise RuntimeError("out of resources")
            spoiled = result.reward[7:8] if fault == "reward" else result.games.fields[0][-1, 0, :1]
            spoiled += 1
            return result

    envs = [HironakaVectorEnv(5, seat="host", backend="torch") for _ in range(2)]
    envs[0].backend = Checked(Faulty())
    envs[1].reset(seed=1)
    with pytest.warns(RuntimeWarning, match="does not work on cpu: .*(wrong|out of resources)"):
        envs[0].reset(seed=1)
    actions = torch.zeros(5, dtype=torch.int64)
    for found, wanted in zip(*(env.step(actions)[:4] for env in envs), strict=True):
        assert torch.equal(found, wanted)
