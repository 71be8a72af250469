"""Commands as processes: what they load, shells of all kinds, other encodings, signals."""

import os
import signal
import subprocess
import sys
import time

import pytest

import resgym
from tests.resgym.commands import run

TREE, CURVES = "resgym tree E6", "sb3_ext curves --help"
ROUND = "sb3_ext two_player --config small --dry-run"
ENVIRONMENTS = {
    "ascii": {"PYTHONIOENCODING": "ascii"},
    "cp1252": {"PYTHONIOENCODING": "cp1252"},
    "C": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
}
# The command, its redirections, the environment, the code, and the line on stderr.
CASES = [
    (TREE, "", "ascii", 0, ""),
    (TREE, "", "cp1252", 0, ""),
    (TREE, "", "C", 0, ""),
    (TREE, "<&-", "", 0, ""),
    (TREE, ">&-", "", 0, ""),
    (TREE, "<&- >&- 2>&-", "", 0, ""),
    (TREE, ">/dev/full", "", 1, "resgym: standard output: [Errno 28] No space left on device\n"),
    ("resgym --help", ">/dev/full", "", 1, "resgym: standard output: [Errno 28] No space"),
    ("resgym tree é+x", "", "ascii", 2, "resgym tree: unexpected "),
    ("resgym play E6", "<&-", "", 0, ""),
    ("resgym certificate -", "<&-", "", 2, "resgym certificate: certificate: cannot be read: No"),
    (CURVES, ">/dev/full", "", 1, "curves: standard output: [Errno 28] No space left on device"),
    (CURVES, "<&- >&-", "ascii", 0, ""),
    ("sb3_ext --help", "| true", "", 0, ""),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(map(str, case[:3])))
def test_a_command_ends_with_its_code_and_at_most_one_line(case, tmp_path):
    command, redirections, environment, code, line = case
    script = f'"{sys.executable}" -m {command} {redirections}; exit ${{PIPESTATUS[0]}}'
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        cwd=tmp_path,
        env={**kept, **ENVIRONMENTS.get(environment, {})},
        timeout=120,
    )
    error = done.stderr.decode("latin-1")
    assert done.returncode in (code, 141 if "|" in redirections else code), error
    assert error.startswith(line)
    assert "Traceback" not in error
    assert "Exception" not in error
    assert line or not error


@pytest.mark.parametrize(
    ("command", "name"), [("resgym examine x+y", "resgym"), (ROUND, "two_player")]
)
def test_a_warning_is_one_line(command, name, tmp_path):
    (tmp_path / "warner.py").write_text(r'import warnings; warnings.warn("a\nb \x1b[31m")')
    done = subprocess.run(
        [sys.executable, "-m", *command.split(), "--import", "warner"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        timeout=120,
    )
    assert done.returncode == 0
    assert done.stderr == f"{name}: warning: a b \\x1b[31m\n"


@pytest.mark.parametrize("name", ["SIGHUP", "SIGTERM"])
def test_a_signal_ends_a_command_by_its_code(name, tmp_path):
    words = ["solve", "random(dim=7,points=30,max=60)"]
    command = [sys.executable, "-m", "resgym", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, cwd=tmp_path) as running:
        time.sleep(1)
        running.send_signal(getattr(signal, name))
        error = running.communicate(timeout=60)[1]
    assert (running.returncode, error) == (-getattr(signal, name), b"")


def test_a_hang_up_stops_a_run(tmp_path):
    words = ["two_player", "--config", "small", "--steps", "100000", "--out", "run"]
    command = [sys.executable, "-m", "sb3_ext", *words]
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True, cwd=tmp_path) as running:
        while running.poll() is None and not list(tmp_path.glob("run/*.jsonl")):
            time.sleep(0.1)
        time.sleep(0.2)
        running.send_signal(signal.SIGHUP)
        out, error = running.communicate(timeout=100)
    assert (running.returncode, "Traceback" in error) == (129, False), error
    assert "SIGHUP" in out


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
    pytest.importorskip("numba")
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
