"""The Triton kernels without a GPU: compiled for one, and interpreted.

The interpreter is chosen when Triton is first imported, so it gets a process of its own.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

triton = pytest.importorskip("triton")

from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402

from resgym.cuda import backend as triton_launch  # noqa: E402
from resgym.cuda import kernels as triton_kernels  # noqa: E402

pytestmark = pytest.mark.skipif(triton_launch.INTERPRETED, reason="compiles, interprets not")

H200 = GPUTarget("cuda", 90, 32)
TYPES = {
    "*i64": "actions answered_axes old_points old_count old_half_moves seeds old_episode old_key "
    "old_lengths table new_points new_numbers",
    "*fp32": "old_returns new_floats rewards seen final_seen",
    "*u8": "old_coords old_ended new_coords flags",
    "*i8": "seen_coords final_coords",
}
KIND = {name: kind for kind, names in TYPES.items() for name in names.split()}


def compiled(kernel, num_points, dimension, **flags):
    constants = flags | triton_launch.sizes(num_points, dimension)
    signature = {
        name: "constexpr" if name in constants else KIND.get(name, "i64")
        for name in kernel.arg_names
    }
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
    return triton.compile(source, target=H200, options={"num_warps": 1})


USUAL = {
    "SEAT": 0, "OPPONENT": 0, "REWARD": 0, "ON_ILLEGAL": 1, "MODE": 0, "RESTARTS": True,
    "SCALE": True, "REPOSITION": False,
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(
    ("num_points", "dimension", "flags"),
    [
        (20, 3, {}),
        (20, 3, {"SEAT": 1, "OPPONENT": 1, "REWARD": 3, "ON_ILLEGAL": 0, "MODE": 1}),
        (20, 5, {"SEAT": 2, "REWARD": 2, "ON_ILLEGAL": 3, "MODE": 2, "RESTARTS": False}),
        (50, 3, {"SCALE": False, "REWARD": 1, "OPPONENT": 2, "REPOSITION": True}),
        (20, 10, {}),
        (20, 3, {"SEAT": 1, "OPPONENT": -1, "RESTARTS": False}),
        (20, 3, {"SEAT": 1, "OPPONENT": 2, "MODE": triton_kernels.STARTING}),
    ],
)
def test_the_step_compiles(num_points, dimension, flags):
    code = compiled(triton_kernels.step_games, num_points, dimension, **{**USUAL, **flags})
    text = code.asm["ptx"]
    assert len(code.asm["cubin"]) > 1000, "ptxas made nothing"
    assert not re.search(r"div\.(full|approx)", text), "a division that is not IEEE's"
    assert "bar.sync" not in text, "a program of one warp waits for nothing"
    assert ".local " not in text, "points have left the registers"


FUSED = str(Path(__file__).with_name("test_fused.py"))
# One of each: a step that is refused, steps with overflows and restarts, players that are asked.
QUICK = (
    "test_refused_steps_change_nothing and HironakaHost"
    " or test_overflow and HironakaHost and SAME_STEP"
    " or test_opponents_asked and zeillinger and NEXT_STEP"
)


def passed(*arguments):
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", FUSED, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return int(re.search(r"(\d+) passed", done.stdout)[1])


def test_a_few_of_the_kernels_tests():
    assert passed("-k", QUICK) == 3


@pytest.mark.long
def test_all_of_the_kernels_tests():
    assert passed() > 40
