"""Runs that are killed at given points, resumed and finished; prints what became of each.

    python -m tests.sb3_ext.checkpoints.killed_runs FOLDER PLAN ...

A plan is a list of kill points, one for each process that works on the run before the one that
finishes it: ``step:7`` is killed in the 7th parallel step that it makes, ``write:5`` at the 5th
synchronisation or rename of a file, ``none`` not at all. For every plan a line is printed with a
digest of the finished run's whole state, and how many of its processes were killed.

Each process is forked from this one, which has only imported.
"""

from __future__ import annotations

import hashlib
import signal
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import torch

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.callbacks.base import Checkpoints, Every, Signals
from sb3_ext.checkpoints.model_state import global_random_state, model_state
from sb3_ext.checkpoints.resume import resume
from sb3_ext.ddqn import DDQN
from sb3_ext.runs.checkpoint import list_checkpoints, split_state
from sb3_ext.runs.files import CheckpointWarning
from sb3_ext.schedules.schedules import Exponential, Linear
from tests.sb3_ext.ddqn.helpers import MaskedToy
from tests.sb3_ext.runs.killed import die_at_call, die_at_write, fork

TRANSITIONS = 480


def make_model() -> DDQN:
    return DDQN(
        "MultiInputPolicy",
        TensorVecEnv(MaskedToy(8)),
        learning_rate=Exponential(1e-2, 1e-4, 0.95),
        exploration_rate=Linear(1.0, 0.05, steps=60),
        buffer_size=480,
        learning_starts=64,
        batch_size=16,
        train_freq=2,
        gradient_steps=3,
        n_steps=2,
        target_update_interval=24,
        target_update_unit="transitions",
        tau=0.5,
        policy_kwargs={"net_arch": [24, "b"]},
        seed=3,
        device="cpu",
        log_interval_seconds=None,
        log_interval_updates=7,
    )


def digest(state: Any) -> str:
    """SHA-256 of a state, without what says in how many pieces it was made."""
    plain, tensors = split_state(state, "state")
    result = hashlib.sha256(repr(plain).encode())
    for name in sorted(tensors):
        result.update(name.encode() + tensors[name].contiguous().numpy().tobytes())
    return result.hexdigest()


def work(run_dir: Path, kill: str) -> int:
    """Goes on with a run until it is killed or finished."""
    kind, _, number = kill.partition(":")
    if kind == "step":
        die_at_call(MaskedToy, "step", int(number))
    if kind == "write":
        die_at_write(int(number))
    torch.manual_seed(int(number or 0))  # what a process begins with must not matter
    model = make_model()
    callbacks = [Signals(), Checkpoints(run_dir, Every(updates=30))]
    if list_checkpoints(run_dir):
        resume(model, run_dir, callbacks)
    model.learn(TRANSITIONS - model.num_timesteps, callbacks, reset_num_timesteps=False)
    (run_dir / "digest").write_text(digest({**model_state(model), "rng": global_random_state()}))
    return 0


def main() -> None:
    torch.set_num_threads(1)
    # A reader that had to fall back to an earlier checkpoint would be a finding.
    warnings.simplefilter("error", CheckpointWarning)
    folder, *plans = sys.argv[1:]
    for number, plan in enumerate(plans):
        run_dir = Path(folder) / str(number)
        kills = sum(
            fork(partial(work, run_dir, kill)) == signal.SIGKILL for kill in plan.split(",")
        )
        if not (run_dir / "digest").exists():
            fork(partial(work, run_dir, "none"))
        print(plan, (run_dir / "digest").read_text(), kills, flush=True)


if __name__ == "__main__":
    main()
