"""What a command does not load: the first answer of a process comes at once."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("numba")

LEARNING = ["optuna", "pandas", "rl_zoo3", "torch._dynamo"]


@pytest.mark.parametrize(
    ("command", "absent"),
    [
        ("tree E8", ["numba", "torch"]),
        ("tree E8 --host all_coord --max-depth 5", ["numba", "torch"]),
        ("solve E8", ["numba", "torch"]),
        ("tree E8 --host taught", LEARNING),
        ("rho zeillinger random --games 100", [*LEARNING, "stable_baselines3"]),
    ],
)
def test_what_a_command_does_not_load(command: str, absent: list[str]) -> None:
    if "taught" in command:
        pytest.importorskip("safetensors")
    program = (
        "import sys; from resgym.cli import main; code = main(sys.argv[1:]);"
        f"print(code, [name for name in {absent!r} if name in sys.modules], file=sys.stderr)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, *command.split()],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.stderr.splitlines()[-1:] == ["0 []"], run.stderr
