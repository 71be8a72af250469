"""What a command does not load: the first answer of a process comes at once."""

import subprocess
import sys

import pytest

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
    run = subprocess.run(arguments, capture_output=True, text=True, timeout=300)
    assert (run.returncode, run.stderr.splitlines()[-1:]) == (0, ["[]"]), run.stderr
