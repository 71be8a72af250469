"""Runs that leave checkpoints, go on after an interruption, or start from another run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback, CallbackList

from sb3_ext.callbacks.checkpoints import Checkpoints, Signals
from sb3_ext.checkpoints.checkpoint import list_checkpoints
from sb3_ext.checkpoints.resume import init_from, resume
from sb3_ext.config.checks import check_count
from sb3_ext.off_policy.algorithm import OffPolicy
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
        callbacks: more that watch the training.
    """

    resume: Path | None = None
    init_from: Path | None = None
    checkpoint_updates: int = CHECKPOINT_UPDATES
    actors: int | None = None
    callbacks: tuple[BaseCallback, ...] = ()

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
        if not isinstance(model, OffPolicy):
            if self.resume is None and self.init_from is None:
                return
            raise ValueError(
                f"resume and init-from work with ddqn, got {type(model).__name__}; "
                "rl_zoo3's own -i continues others"
            )
        if self.checkpoint_updates:
            every = Every(updates=self.checkpoint_updates)
            callbacks += [Signals(verbose=1), Checkpoints(run_dir, every)]
        if self.resume is not None and list_checkpoints(self.resume):
            path = resume(model, self.resume, CallbackList(callbacks))
            for each in callbacks:  # SB3's own act at multiples of their calls
                each.n_calls = model.num_timesteps // model.n_envs
            print(f"going on from {path}, {model.num_timesteps} transitions")
        elif self.resume is not None:
            print(f"{self.resume} has no checkpoint yet: the run begins anew")
        elif self.init_from is not None:
            print(f"networks of {init_from(model, self.init_from)}")


def transitions_for(model: Any, updates: int) -> int:
    """Transitions after which a model has made so many updates, rounded up to whole blocks."""
    if model.replay_ratio is not None or model.gradient_steps < 1:
        raise ValueError("algorithm: gradient_steps must be at least 1, without replay_ratio")
    if updates == 0:
        return 0
    rows = model.n_envs * model.train_freq.frequency
    # Updates begin with the rollout that brings more transitions than learning_starts.
    return int((model.learning_starts // rows - (-updates // model.gradient_steps)) * rows)
