"""rl_zoo3's ``train`` in one of several ranks: the file says what all of them have together."""

from __future__ import annotations

import argparse
from inspect import signature
from typing import Any

import rl_zoo3
from stable_baselines3.common.callbacks import ProgressBarCallback

from sb3_ext.callbacks import (
    ActionCounts,
    LayerStatistics,
    RhoEvaluation,
    SampleGames,
    StopConditions,
    SystemStatistics,
    Timers,
)
from sb3_ext.ddqn import DDQN
from sb3_ext.runs.ranks import local_device
from sb3_ext.training.zoo import Manager

WATCHING = (
    *(ActionCounts, LayerStatistics, RhoEvaluation, SampleGames, StopConditions),
    *(SystemStatistics, Timers),
)
"""Callbacks of a file that the first rank alone can have: they change nothing that is learnt."""

ALONE_ONLY = (
    *("optimize_hyperparameters", "save_replay_buffer", "track", "trained_agent", "trial_id"),
)
"""Options of rl_zoo3 that one process alone can follow."""


class _Progress(ProgressBarCallback):
    """Counts the transitions of all ranks."""

    def _on_step(self) -> bool:
        self.pbar.update(self.training_env.num_envs * self.model.ranks.size)  # type: ignore[attr-defined]
        return True


class RankManager(Manager):
    """The experiment of one rank: it has a part of the rows, and the first one alone writes."""

    def __init__(self, args: argparse.Namespace, algo: str, env_id: str, *more: Any, **kwargs: Any):
        ranks = self.options.ranks
        if not issubclass(rl_zoo3.ALGOS[algo], DDQN):
            raise ValueError(f"algo: only ddqn learns on several ranks, got {algo}")
        for name in ALONE_ONLY:
            if getattr(args, name):
                option = name.replace("_", "-")
                raise ValueError(f"{option}: works without torchrun, here are {ranks.size} ranks")
        kwargs["device"] = local_device(args.device)
        args.ranks = ranks.size
        args.seed = kwargs["seed"] = ranks.exchange(args.seed)[0]
        super().__init__(args, algo, env_id, *more, **kwargs)
        if ranks.rank > 0:
            self.verbose, self.tensorboard_log = 0, None

    def _preprocess_hyperparams(self, hyperparams: dict[str, Any]) -> Any:
        ranks, algorithm = self.options.ranks, rl_zoo3.ALGOS[self.algo]
        ranks.share("n_envs", hyperparams.get("n_envs", 1))
        for name in ("batch_size", "buffer_size"):
            whole = hyperparams.get(name, signature(algorithm).parameters[name].default)
            hyperparams[name] = ranks.share(name, whole)
        result = super()._preprocess_hyperparams(hyperparams)
        if actors := getattr(self.collector, "actors", 0):
            raise ValueError(f"actors: must be 0 with several ranks, got {actors}")
        self.collector = None
        return result

    def build_named(self) -> None:
        """The callbacks of the file may only look on."""
        super().build_named()
        for each in self.callbacks:
            if type(each) not in WATCHING:
                names = ", ".join(kind.__name__ for kind in WATCHING)
                raise ValueError(
                    f"callback: several ranks can have {names}, got {type(each).__name__}"
                )

    def create_log_folder(self) -> None:
        """Makes the run's folder, which all ranks write their checkpoints to."""
        ranks = self.options.ranks
        with ranks.together():
            if ranks.rank == 0:
                super().create_log_folder()
        self.save_path, self.params_path = ranks.exchange((self.save_path, self.params_path))[0]

    def create_callbacks(self) -> None:
        """Those that look on are the first rank's."""
        if self.options.ranks.rank > 0:
            self.build_named()
            self.callbacks = []
            return
        super().create_callbacks()
        self.callbacks = [
            _Progress() if type(each) is ProgressBarCallback else each for each in self.callbacks
        ]

    def create_envs(self, n_envs: int, eval_env: bool = False, no_log: bool = False) -> Any:
        """For training, the rows of this rank."""
        ranks = self.options.ranks
        if not eval_env:
            n_envs, no_log = ranks.share("n_envs", n_envs), no_log or ranks.rank > 0
        return super().create_envs(n_envs, eval_env, no_log)

    def _save_config(self, saved_hyperparams: dict[str, Any]) -> None:
        if self.options.ranks.rank == 0:
            super()._save_config(saved_hyperparams)

    def save_trained_model(self, model: Any) -> None:
        """Once: it is the same in all ranks."""
        if self.options.ranks.rank == 0:
            super().save_trained_model(model)
