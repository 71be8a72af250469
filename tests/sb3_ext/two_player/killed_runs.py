"""Two-player runs that are killed at given points, resumed and finished, as their module of models.

    python -m tests.sb3_ext.two_player.killed_runs FOLDER PLAN ...

A plan is a list of kill points, one for each process that works on the run before the one that
finishes it: ``step:7`` in the trainer's 7th step, ``write:5`` at the 5th synchronisation or rename
of a file. For every plan a line is printed: how many of its processes were killed, and the files
that differ from those of the first one, which is not killed.
"""

from __future__ import annotations

import signal
import sys
import warnings
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path

import torch
import yaml

from sb3_ext.two_player.cli import main as train
from sb3_ext.two_player.trainer import HostAgentTrainer
from tests.sb3_ext.runs.killed import contents, die_at_call, die_at_write, fork
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


def work(run: Path, kill: str) -> int:
    """Goes on with a run until it is killed or finished; the exit code."""
    kind, _, number = kill.partition(":")
    torch.manual_seed(int(number or 0))  # what a process begins with must not matter
    if kind == "step":
        die_at_call(HostAgentTrainer, "step", int(number))
    if kind == "write":
        die_at_write(int(number))
    arguments = ["--config", str(run.parent / "killed.yml"), "--out", str(run)]
    if (run / "config.yml").exists():
        arguments = ["--resume", str(run)]
    with redirect_stdout(None):
        return train([*arguments, "--no-progress"])


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("error")
    folder, *plans = sys.argv[1:]
    configuration = yaml.safe_dump(tiny(*SETTINGS, name="self_play"), sort_keys=False)
    (Path(folder) / "killed.yml").write_text(configuration)
    whole: dict[str, object] = {}
    for number, plan in enumerate(plans):
        run = Path(folder) / str(number)
        kills = sum(
            fork(partial(work, run, kill)) == signal.SIGKILL for kill in plan.split(",") if kill
        )
        fork(partial(work, run, "none"))
        found = contents(run)
        whole = whole or found
        names = found.keys() | whole.keys()
        different = [name for name in names if found.get(name) != whole.get(name)]
        print(plan or "none", kills, ",".join(sorted(different)) or "nothing", flush=True)


if __name__ == "__main__":
    main()
