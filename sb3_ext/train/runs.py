"""What a run of `train` logs, and how long it has to be."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from numbers import Real
from pathlib import Path
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter

from sb3_ext.runs.folder import RunFolder
from sb3_ext.runs.provenance import provenance


class RunLines(BaseCallback, KVWriter):
    """Keeps what is logged in `metrics.jsonl`, a line each time, and resumes in `resumed.jsonl`.

    Args:
        run_dir: folder of the run.
        resumed: whether `learn` goes on with a run. What was logged after its checkpoint is
            dropped, since it comes again.
    """

    def __init__(self, run_dir: Path, resumed: bool) -> None:
        super().__init__()
        self._folder, self._resumed = RunFolder(run_dir), resumed

    def _on_rollout_start(self) -> None:  # a run that is refused never comes to it
        formats = self.logger.output_formats
        if self in formats:
            return
        if self._resumed:
            origin = provenance(self.model.seed, sys.orig_argv)
            self._folder.append("resumed.jsonl", {"step": self.num_timesteps, **origin})
            self._folder.keep_lines_until("metrics.jsonl", self.num_timesteps)
        formats.append(self)

    def _on_step(self) -> bool:
        return True

    def write(
        self,
        key_values: dict[str, Any],
        key_excluded: Mapping[str, tuple[str, ...]],
        step: int = 0,
    ) -> None:
        """Takes what is written to a log."""
        numbers = {key: float(x) for key, x in key_values.items() if isinstance(x, Real)}
        self._folder.append("metrics.jsonl", {"step": step, **numbers})

    def close(self) -> None:
        """Nothing is held open."""


def transitions_for(model: Any, updates: int) -> int:
    """Transitions after which a model has made so many updates, rounded up to whole blocks."""
    if model.replay_ratio is not None or model.gradient_steps < 1:
        raise ValueError("algorithm: gradient_steps must be at least 1, without replay_ratio")
    if updates == 0:
        return 0
    rows = model.n_envs * model.train_freq.frequency
    # Updates begin with the rollout that brings more transitions than learning_starts.
    return int((model.learning_starts // rows - (-updates // model.gradient_steps)) * rows)
