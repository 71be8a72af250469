"""Two-player runs that are killed at given points, resumed and finished, as their module of models.

    python -m tests.sb3_ext.two_player.killed_runs FOLDER PLAN ...

A plan is a list of kill points, one for each process that works on the run before the one that
finishes it: ``step:7`` in the trainer's 7th step, ``write:5`` at the 5th synchronisation or rename
of a file. For every plan a line is printed with a digest of the finished run and how many of its
processes were killed.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import warnings
from contextlib import redirect_stdout
from pathlib import Path

import torch
import yaml

from sb3_ext.checkpoints.checkpoint import load_checkpoint
from sb3_ext.checkpoints.plain_state import split_state
from sb3_ext.two_player.cli import main as train
from sb3_ext.two_player.steps import Steps
from tests.sb3_ext.checkpoints.killed_runs import die_at_write
from tests.sb3_ext.two_player.helpers import tiny

SETTINGS = (
    "training.steps=12",
    "checkpoint.every_steps=2",
    "logging.every_steps=1",
    "evaluation.every_steps=3",
    "roles.host.net_arch=[16, b]",
    "self_play.save_steps=2",
    "self_play.swap_steps=1",
    "self_play.window=2",
    "self_play.rating_games=5",
)


def digest(run: Path) -> str:
    """SHA-256 of a finished run's whole state and of its measurements, without times."""
    state = load_checkpoint(run / "checkpoints")
    state["trainer"]["seconds"] = {}
    plain, tensors = split_state(state, "state")
    result = hashlib.sha256(repr(plain).encode())
    for name in sorted(tensors):
        result.update(name.encode() + tensors[name].contiguous().numpy().tobytes())
    result.update((run / "evaluations.jsonl").read_bytes())
    return result.hexdigest()


def die_at_step(kill_at: int) -> None:
    original, count = Steps.step, 0

    def dying(self: Steps, players: list[str]) -> None:
        nonlocal count
        count += 1
        if count == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        original(self, players)

    Steps.step = dying  # type: ignore[method-assign]


def work(run: Path, kill: str) -> int:
    """Goes on with a run until it is killed or finished; the exit code."""
    kind, _, number = kill.partition(":")
    torch.manual_seed(int(number or 0))  # what a process begins with must not matter
    if kind == "step":
        die_at_step(int(number))
    if kind == "write":
        die_at_write(int(number))
    arguments = ["--config", str(run.parent / "killed.yml"), "--out", str(run)]
    if (run / "config.yml").exists():
        arguments = ["--resume", str(run)]
    with redirect_stdout(None):
        return train([*arguments, "--no-progress"])


def fork(run: Path, kill: str) -> int:
    """Works in a process of its own; the signal that ended it, or 0."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = work(run, kill)
        finally:
            sys.stderr.flush()
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0:
        raise SystemExit(f"{run}: failed")
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("error")
    folder, *plans = sys.argv[1:]
    configuration = yaml.safe_dump(tiny(*SETTINGS, name="self_play"), sort_keys=False)
    (Path(folder) / "killed.yml").write_text(configuration)
    for number, plan in enumerate(plans):
        run = Path(folder) / str(number)
        kills = sum(fork(run, kill) == signal.SIGKILL for kill in plan.split(",") if kill)
        if not (run / "summary.json").exists() or kills:
            fork(run, "none")
        print(plan or "none", digest(run), kills, flush=True)


if __name__ == "__main__":
    main()
