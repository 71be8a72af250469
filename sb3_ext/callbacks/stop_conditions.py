"""Ends training by a budget, or when a goal is reached."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import torch
from stable_baselines3.common.callbacks import BaseCallback

from sb3_ext.adapter.sb3_private import num_updates
from sb3_ext.callbacks.base import as_tensor, stop_training
from sb3_ext.callbacks.conditions import MetricFeed, load_states, parse_conditions
from sb3_ext.config.checks import check_count, check_number

_STEPS_BETWEEN_READINGS = 64  # of episodes counted on an accelerator: reading waits for it


class StopConditions(BaseCallback):
    """Ends `learn` when the first budget is used up, or when all conditions on metrics hold.

    Budgets count from the beginning of the run, whatever was resumed in between. What was collected
    is still learnt from, so the numbers are lower bounds. Logs ``time/remaining``, the share of the
    budget that will be used up first which is left.

    Args:
        max_updates: gradient updates.
        max_timesteps: transitions collected.
        max_episodes: episodes ended in all rows together.
        max_seconds: seconds of training.
        until: conditions on metrics (see `sb3_ext.callbacks.conditions`), which must all hold.
        verbose: 1 prints the reason.

    Attributes:
        reason: what ended training, None if nothing did.
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
        super().__init__(verbose)
        self.budgets: dict[str, float] = {}
        if max_updates is not None:
            self.budgets["max_updates"] = check_count("max_updates", max_updates)
        if max_timesteps is not None:
            self.budgets["max_timesteps"] = check_count("max_timesteps", max_timesteps)
        if max_episodes is not None:
            self.budgets["max_episodes"] = check_count("max_episodes", max_episodes)
        if max_seconds is not None:
            seconds = check_number("max_seconds", max_seconds, low=0, above=True)
            self.budgets["max_seconds"] = seconds
        self.conditions = [] if until is None else parse_conditions(until)
        if not self.budgets and not self.conditions:
            raise ValueError(
                "give at least one of max_updates, max_timesteps, max_episodes, max_seconds and"
                " until"
            )
        self.reason: str | None = None
        self._feed = MetricFeed(condition.field for condition in self.conditions)
        self._episodes = 0
        self._ended = torch.tensor(0)  # episodes that are not in `_episodes` yet
        self._earlier_seconds = 0.0
        self._began: float | None = None

    def _seconds(self) -> float:
        now = 0.0 if self._began is None else time.monotonic() - self._began
        return self._earlier_seconds + now

    def used(self) -> dict[str, float]:
        """How much of each budget was used."""
        now = {
            "max_updates": num_updates(self.model),
            "max_timesteps": self.model.num_timesteps,
            "max_episodes": self._episodes,
            "max_seconds": self._seconds(),
        }
        return {name: float(now[name]) for name in self.budgets}

    def _on_training_start(self) -> None:
        self.reason = None
        self._earlier_seconds, self._began = self._seconds(), time.monotonic()
        self._feed.start(self)
        self._check()

    def _on_step(self) -> bool:
        if "max_episodes" in self.budgets:
            ended = as_tensor(self.locals["dones"]).sum()
            self._ended = self._ended.to(ended.device) + ended
            if ended.device.type == "cpu" or self.n_calls % _STEPS_BETWEEN_READINGS == 0:
                self._read_episodes()
        if self.conditions:
            self._feed.show(self.model, self.conditions)
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
        used = self.used()
        left = [1.0 - used[name] / budget for name, budget in self.budgets.items()]
        if left:
            self.logger.record("time/remaining", max(min(left), 0.0))
        if self.reason is None:
            self.reason = self._found_reason(used)
            if self.reason is not None and self.verbose:
                print(f"training ends: {self.reason}")
        return True if self.reason is None else stop_training(self.model)

    def _found_reason(self, used: Mapping[str, float]) -> str | None:
        for name, budget in self.budgets.items():
            if used[name] >= budget:
                return f"{name} {budget:g} reached"
        if self.conditions and all(condition.met for condition in self.conditions):
            return f"goal reached: {', '.join(condition.field for condition in self.conditions)}"
        return None

    def _on_training_end(self) -> None:
        self._feed.stop()
        self._earlier_seconds, self._began = self._seconds(), None

    def state_dict(self) -> dict[str, Any]:
        """What was used of the budgets that the model does not count itself, and of conditions."""
        return {
            "conditions": [condition.state_dict() for condition in self.conditions],
            "episodes": self._read_episodes(),
            "feed": self._feed.state_dict(),
            "seconds": self._seconds(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where `state_dict` was taken; a ValueError if there were other conditions."""
        load_states(self.conditions, state["conditions"])
        self._episodes = state["episodes"]
        self._feed.load_state_dict(state["feed"])
        self._earlier_seconds, self._began = state["seconds"], None
