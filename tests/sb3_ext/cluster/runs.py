"""A small training with actors, also as a process that can be killed and started again.

    python -m tests.sb3_ext.cluster.runs FOLDER ACTORS TRANSITIONS

goes on with the run in a folder, prints a line after each block of updates, and writes a digest of
the weights when it is done.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import torch
from stable_baselines3.common.callbacks import BaseCallback

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.callbacks.base import Checkpoints, Every
from sb3_ext.checkpoints.resume import resume
from sb3_ext.cluster import RayCollector
from sb3_ext.ddqn import DDQN
from sb3_ext.runs.checkpoint import list_checkpoints
from tests.fakes import ToyVectorEnv
from tests.sb3_ext.ddqn.helpers import make_model, weights

GAMES, CHUNK = 8, 10


def toy(**arguments: Any) -> DDQN:
    return make_model(TensorVecEnv(ToyVectorEnv(GAMES)), gradient_steps=1, **arguments)


def collector(actors: int = 2, **arguments: Any) -> RayCollector:
    given = {"chunk": CHUNK, "sync_updates": 10, "max_staleness": 60, **arguments}
    return RayCollector(given.pop("env", ToyVectorEnv), actors=actors, **given)


class Lines(BaseCallback):
    def _on_rollout_start(self) -> None:
        print(self.model.num_timesteps, flush=True)

    def _on_step(self) -> bool:
        return True


def main(folder: Path, actors: int, transitions: int) -> None:
    torch.set_num_threads(1)
    model, callbacks = toy(), [Lines(), Checkpoints(folder, Every(updates=10))]
    if list_checkpoints(folder):
        resume(model, folder, callbacks)
    source = collector(actors, deterministic=True)
    left = transitions - model.num_timesteps
    model.learn(left, callbacks, reset_num_timesteps=False, collector=source)
    digest = hashlib.sha256(repr(model.num_timesteps).encode())
    for value in weights(model).values():
        digest.update(value.contiguous().numpy().tobytes())
    counted = source.statistics
    digest.update(repr([counted["received"], counted["episodes"]]).encode())
    (folder / "digest").write_text(digest.hexdigest())


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
