"""`auto` on a CPU: the reference until compiling pays, with the same bits before and after."""

import os
import subprocess
import sys
from unittest.mock import patch

import numpy as np
import pytest
import torch

pytest.importorskip("numba")

from resgym.envs.environments import HironakaVectorEnv
from resgym.game.spec import GameSpec
from resgym.kernels import dispatch
from resgym.kernels.cpu.backend import NumbaBackend
from resgym.kernels.dispatch import resolve_backend
from tests.resgym.envs.helpers import played


def run(backend):
    env = HironakaVectorEnv(9, max_num_points=6, max_value=5, invalid_action="noop")
    env.backend = backend
    return played(env, 40, 4, lambda env, time: np.arange(9) * (time + 1) % 4)


@pytest.mark.parametrize(("on_disk", "steps"), [(NumbaBackend.compiled, 40), ((), 30)])
def test_the_reference_plays_until_compiling_pays(on_disk, steps, monkeypatch):
    seconds = iter(range(10**6))  # every look at the time is a second later
    monkeypatch.setattr(dispatch, "perf_counter", seconds.__next__)
    monkeypatch.setattr(dispatch, "PATIENCE", 11.0)  # a start and ten steps, a second each
    compiled = NumbaBackend()
    with patch.object(compiled, "step", wraps=compiled.step) as step:
        found = run(dispatch.Patient(compiled, {*on_disk}))
    assert step.call_count == steps
    assert found == run(resolve_backend("torch", torch.device("cpu"), GameSpec()))


@pytest.mark.long
def test_what_is_compiled_ahead_leaves_nothing_to_compile(tmp_path):
    program = (
        "from resgym.cli import main\n"
        "main(['compile'])\n"
        "from resgym.kernels.dispatch import _automatic\n"
        "from resgym.solver.search import is_cached\n"
        "print(type(_automatic('numba')).__name__, is_cached())\n"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1] == "NumbaBackend True", done.stderr
