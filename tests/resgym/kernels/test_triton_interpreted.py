"""Runs the tests of the Triton kernels in its interpreter, where there is no GPU.

The interpreter is chosen when Triton is first imported, so it gets a process of its own.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")

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
