"""Callbacks that end training by a budget, or when a goal is reached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from stable_baselines3.common.callbacks import BaseCallback

from sb3_ext.adapter.sb3_private import num_updates
from sb3_ext.callbacks.base import as_tensor, stop_training
from sb3_ext.callbacks.conditions import MetricFeed
from sb3_ext.runs.stopping import StopRules, load_states

_STEPS_BETWEEN_READINGS = 64  # of episodes counted on an accelerator: reading waits for it


class StopBy(BaseCallback):
    """Ends `learn` by rules, which a checkpoint knows nothing of: those of a command line.

    What was collected is still learnt from, so the numbers are lower bounds. Logs
    ``time/remaining``, the share of the budget that will be used up first which is left.

    Args:
        rules: the rules.
        verbose: 1 prints the reason.
    """

    def __init__(self, rules: StopRules, verbose: int = 0) -> None:
        super().__init__(verbose)
        self.rules = rules
        self._feed = MetricFeed(condition.field for condition in rules.conditions)
        self._episodes = 0
        self._ended = torch.tensor(0)  # episodes that are not in `_episodes` yet

    @property
    def reason(self) -> str | None:
        """What ended training, None if nothing did."""
        return self.rules.reason

    def used(self) -> dict[str, float]:
        """How much of each budget was used."""
        now = {
            "max_updates": num_updates(self.model),
            "max_timesteps": self.model.num_timesteps,
            "max_episodes": self._episodes,
            "max_seconds": self.rules.seconds,
        }
        return {name: float(now[name]) for name in self.rules.budgets}

    def _on_training_start(self) -> None:
        self.rules.reason = None
        self.rules.start()
        self._feed.start(self)
        self._check()

    def _on_step(self) -> bool:
        if "max_episodes" in self.rules.budgets:
            ended = as_tensor(self.locals["dones"]).sum()
            self._ended = self._ended.to(ended.device) + ended
            if ended.device.type == "cpu" or self.n_calls % _STEPS_BETWEEN_READINGS == 0:
                self._read_episodes()
        if self.rules.conditions:
            self._feed.show(self.model, self.rules.conditions)
        return self._check()

    def _read_episodes(self) -> int:
        """How many episodes have ended in all."""
        self._episodes += int(self._ended)
        self._ended = torch.tensor(0)
        return self._episodes

    def after_train(self) -> None:
        """Called by our algorithms after every block of updates."""
        self._check()

    def _check(self) -> bool:
        """What `_on_step` has to return."""
        used, ended_before = self.used(), self.reason is not None
        left = self.rules.remaining(**used)
        if left is not None:
            self.logger.record("time/remaining", left)
        if not self.rules.ended(**used):
            return True
        if self.verbose and not ended_before:
            print(f"training ends: {self.reason}")
        return stop_training(self.model)

    def _on_training_end(self) -> None:
        self._feed.stop()


class StopConditions(StopBy):
    """As `StopBy`, with rules of its own that count from the beginning of the run.

    They are those of `StopRules`; seconds are those of training, whatever was resumed in between.

    Args:
        verbose: 1 prints the reason.
    """

    def __init__(
        self,
        *,
        max_updates: int | None = None,
        max_timesteps: int | None = None,
        max_episodes: int | None = None,
        max_seconds: float | None = None,
        until: Any = None,
        verbose: int = 0,
    ) -> None:
        rules = StopRules(
            max_updates=max_updates,
            max_timesteps=max_timesteps,
            max_episodes=max_episodes,
            max_seconds=max_seconds,
            until=until,
        )
        super().__init__(rules, verbose)

    def _on_training_end(self) -> None:
        super()._on_training_end()
        self.rules.pause()

    def state_dict(self) -> dict[str, Any]:
        """What was used of the budgets that the model does not count itself, and of conditions."""
        return {
            "conditions": [condition.state_dict() for condition in self.rules.conditions],
            "episodes": self._read_episodes(),
            "feed": self._feed.state_dict(),
            "seconds": self.rules.seconds,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where `state_dict` was taken; a ValueError if there were other conditions."""
        load_states(self.rules.conditions, state["conditions"])
        self._episodes = state["episodes"]
        self._feed.load_state_dict(state["feed"])
        self.rules.pause()
        self.rules.earlier_seconds = state["seconds"]
