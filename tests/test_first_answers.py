"""The first answer of a process: what a command does not load, and its version."""

import subprocess
import sys

import pytest

import resgym
from tests.resgym.commands import run

pytest.importorskip("numba")

LEARNING = ["optuna", "pandas", "rl_zoo3", "torch._dynamo"]


@pytest.mark.parametrize(
    ("command", "absent"),
    [
        ("tree E8", ["numba", "torch"]),
        ("--help", ["numba", "torch"]),
        ("solve --help", ["numba", "torch"]),
        ("solve E8", ["numba", "torch"]),
        ("tree E8 --host taught", LEARNING),
        ("rho zeillinger random --games 100", [*LEARNING, "stable_baselines3"]),
    ],
)
def test_what_a_command_does_not_load(command, absent):
    if "taught" in command:
        pytest.importorskip("safetensors")
    program = (
        f"import atexit, sys; loaded = lambda: [n for n in {absent!r} if n in sys.modules];"
        "atexit.register(lambda: print(loaded(), file=sys.stderr));"
        "from resgym.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    arguments = [sys.executable, "-c", program, *command.split()]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr.splitlines()[-1:]) == (0, ["[]"]), done.stderr


def test_the_version_is_printed(capsys):
    assert run(capsys, "--version") == (0, f"resgym {resgym.__version__}\n", "")
    command = [sys.executable, "-m", "resgym", "--version"]
    assert subprocess.check_output(command, text=True) == f"resgym {resgym.__version__}\n"
