"""Runs that leave checkpoints, go on after an interruption, or start from another run."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.logger import KVWriter

from sb3_ext.callbacks.checkpoints import Checkpoints, Signals
from sb3_ext.checkpoints.checkpoint import list_checkpoints
from sb3_ext.checkpoints.resume import init_from, resume
from sb3_ext.config.checks import check_count
from sb3_ext.ddqn import DDQN
from sb3_ext.runs.folder import RunFolder
from sb3_ext.runs.provenance import provenance
from sb3_ext.runs.ranks import ALONE, Ranks
from sb3_ext.schedules.frequency import Every

CHECKPOINT_UPDATES = 1000


@dataclass(frozen=True)
class RunOptions:
    """What to do about checkpoints, and who collects.

    Attributes:
        resume: folder of the run to go on with.
        init_from: folder or checkpoint to take the networks from, instead.
        checkpoint_updates: updates between two checkpoints, 0 for none.
        actors: how many collect in processes of their own; None: what the file says.
        ranks: the processes that learn together.
        switches: how PyTorch calculates, see `sb3_ext.runs.numerics`, to be kept with the run.
        callbacks: more that watch the training.
        starts: file of positions that games start from; None: what the file says.
    """

    resume: Path | None = None
    init_from: Path | None = None
    checkpoint_updates: int = CHECKPOINT_UPDATES
    actors: int | None = None
    ranks: Ranks = ALONE
    switches: Mapping[str, bool] = field(default_factory=dict)
    callbacks: tuple[BaseCallback, ...] = ()
    starts: str | None = None

    def __post_init__(self) -> None:
        if self.resume is not None and self.init_from is not None:
            raise ValueError("resume and init-from exclude each other: give only one of them")
        for name in ("resume", "init_from"):
            path = getattr(self, name)
            if path is not None and not path.is_dir():
                raise ValueError(f"{name.replace('_', '-')}: no such folder {path}")
        check_count("checkpoint-updates", self.checkpoint_updates, low=0)

    def attach(self, model: Any, callbacks: list[BaseCallback], run_dir: Path) -> None:
        """Adds what writes the checkpoints of a run to the callbacks of a new model.

        Then the checkpoint that was asked for is put into both. Only DDQN has checkpoints.
        """
        callbacks += self.callbacks
        if not isinstance(model, DDQN):
            if self.resume is None and self.init_from is None:
                return
            raise ValueError(
                f"resume and init-from work with ddqn, got {type(model).__name__}; "
                "rl_zoo3's own -i continues others"
            )
        model.join(self.ranks)
        if self.ranks.rank == 0:
            callbacks.append(RunLines(run_dir, resumed=self.resume is not None))
        if self.checkpoint_updates:
            every = Every(updates=self.checkpoint_updates)
            callbacks += [Signals(verbose=1), Checkpoints(run_dir, every)]
        if self.resume is not None and list_checkpoints(self.resume):
            path = resume(model, self.resume, CallbackList(callbacks))
            for each in callbacks:  # SB3's own act at multiples of their calls
                each.n_calls = model.num_timesteps // (model.n_envs * model.ranks.size)
            print(f"going on from {path}, {model.num_timesteps} transitions")
        elif self.resume is not None:
            print(f"{self.resume} has no checkpoint yet: the run begins anew")
        elif self.init_from is not None:
            print(f"networks of {init_from(model, self.init_from)}")


class RunLines(BaseCallback):
    """Keeps what is logged in `metrics.jsonl`, a line each time, and resumes in `resumed.jsonl`.

    Args:
        run_dir: folder of the run.
        resumed: whether `learn` goes on with a run. What was logged after its checkpoint is
            dropped, since it comes again.
    """

    def __init__(self, run_dir: Path, resumed: bool) -> None:
        super().__init__()
        self._folder, self._resumed = RunFolder(run_dir), resumed
        self._writer = _LineWriter(self._folder)

    def _on_rollout_start(self) -> None:  # a run that is refused never comes to it
        formats = self.logger.output_formats
        if self._writer in formats:
            return
        self._folder.path.mkdir(parents=True, exist_ok=True)
        if self._resumed:
            origin = provenance(self.model.seed, sys.orig_argv)
            self._folder.append("resumed.jsonl", {"step": self.num_timesteps, **origin})
            self._folder.keep_lines_until("metrics.jsonl", self.num_timesteps)
        formats.append(self._writer)

    def _on_step(self) -> bool:
        return True


class _LineWriter(KVWriter):
    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder

    def write(
        self,
        key_values: dict[str, Any],
        key_excluded: Mapping[str, tuple[str, ...]],
        step: int = 0,
    ) -> None:
        numbers = {key: float(x) for key, x in key_values.items() if isinstance(x, Real)}
        self.folder.append("metrics.jsonl", {"step": step, **numbers})


def transitions_for(model: Any, updates: int) -> int:
    """Transitions after which a model has made so many updates, rounded up to whole blocks."""
    if model.replay_ratio is not None or model.gradient_steps < 1:
        raise ValueError("algorithm: gradient_steps must be at least 1, without replay_ratio")
    if updates == 0:
        return 0
    rows = model.n_envs * model.train_freq.frequency
    # Updates begin with the rollout that brings more transitions than learning_starts.
    return int((model.learning_starts // rows - (-updates // model.gradient_steps)) * rows)
