"""What a run of `train` logs, and how long it has to be."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from numbers import Real
from pathlib import Path
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.logger import KVWriter

from sb3_ext.callbacks.checkpoints import Checkpoints, Signals
from sb3_ext.checkpoints.checkpoint import list_checkpoints
from sb3_ext.checkpoints.resume import init_from, resume
from sb3_ext.ddqn import DDQN
from sb3_ext.runs.folder import RunFolder
from sb3_ext.runs.provenance import provenance
from sb3_ext.runs.ranks import ALONE, Ranks
from sb3_ext.schedules.frequency import Every


def attach(
    model: Any,
    callbacks: list[BaseCallback],
    folder: Path,
    resumed: Path | None = None,
    init: Path | None = None,
    checkpoint_updates: int = 1000,
    ranks: Ranks = ALONE,
) -> None:
    """Adds what writes the checkpoints of a run to the callbacks of a new model.

    Then the checkpoint that was asked for is put into both. Only DDQN has checkpoints.

    Args:
        model: new.
        callbacks: of the run, to which more are added.
        folder: of the run.
        resumed: the run to go on with.
        init: folder or checkpoint to take the networks from.
        checkpoint_updates: updates between two checkpoints, 0 for none.
        ranks: the processes that learn together.
    """
    if not isinstance(model, DDQN):
        if resumed is None and init is None:
            return
        raise ValueError(
            f"resume and init-from work with ddqn, got {type(model).__name__}; "
            "rl_zoo3's own -i continues others"
        )
    model.join(ranks)
    if ranks.rank == 0:
        callbacks.append(RunLines(folder, resumed=resumed is not None))
    if checkpoint_updates:
        callbacks += [Signals(verbose=1), Checkpoints(folder, Every(updates=checkpoint_updates))]
    if resumed is not None and list_checkpoints(resumed):
        path = resume(model, resumed, CallbackList(callbacks))
        for each in callbacks:  # SB3's own act at multiples of their calls
            each.n_calls = model.num_timesteps // (model.n_envs * model.ranks.size)
        print(f"going on from {path}, {model.num_timesteps} transitions")
    elif resumed is not None:
        print(f"{resumed} has no checkpoint yet: the run begins anew")
    elif init is not None:
        print(f"networks of {init_from(model, init)}")


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
