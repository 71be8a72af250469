"""Ends training by a budget, or when a goal is reached: the same few rules for every command."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from stable_baselines3.common.callbacks import BaseCallback

from sb3_ext.adapter.sb3_private import num_updates
from sb3_ext.callbacks.base import as_tensor, stop_training
from sb3_ext.callbacks.conditions import MetricFeed, load_states, parse_conditions
from sb3_ext.config.checks import check_count, check_number
from sb3_ext.config.reading import split_setting
from sb3_ext.config.registry import unknown_word
from sb3_ext.config.sections import ConfigError, errors_of

_STEPS_BETWEEN_READINGS = 64  # of episodes counted on an accelerator: reading waits for it

RULES = ("max_updates", "max_timesteps", "max_episodes", "max_seconds", "until")


class Ended(Exception):
    """A rule ended the work; what is finished is kept."""


class StopRules:
    """Budgets, of which the first that is used up ends the work, and conditions that all must hold.

    Args:
        max_updates: gradient updates.
        max_timesteps: transitions collected.
        max_episodes: episodes ended in all rows together.
        max_seconds: seconds while `start` was called last and not `pause`.
        until: conditions on metrics, see `sb3_ext.callbacks.conditions`.

    Attributes:
        reason: what ended the work, None if nothing did.
    """

    def __init__(
        self,
        *,
        max_updates: int | None = None,
        max_timesteps: int | None = None,
        max_episodes: int | None = None,
        max_seconds: float | None = None,
        until: Any = None,
    ) -> None:
        counts = (max_updates, max_timesteps, max_episodes)
        self.budgets: dict[str, float] = {
            name: check_count(name, count)
            for name, count in zip(RULES, counts, strict=False)
            if count is not None
        }
        if max_seconds is not None:
            seconds = check_number("max_seconds", max_seconds, low=0, above=True)
            self.budgets["max_seconds"] = seconds
        self.conditions = [] if until is None else parse_conditions(until)
        if not self.budgets and not self.conditions:
            raise ValueError(f"give at least one of {', '.join(RULES[:-1])} and {RULES[-1]}")
        self.reason: str | None = None
        self.earlier_seconds = 0.0
        self._began: float | None = None

    @property
    def seconds(self) -> float:
        """How many seconds count so far."""
        now = 0.0 if self._began is None else time.monotonic() - self._began
        return self.earlier_seconds + now

    def start(self) -> None:
        """Seconds count from now on."""
        self.earlier_seconds, self._began = self.seconds, time.monotonic()

    def pause(self) -> None:
        """Seconds do not count until `start` is called again."""
        self.earlier_seconds, self._began = self.seconds, None

    def check_fields(self, known: Collection[str], where: str = "--stop: until") -> None:
        """Raises a ConfigError for a condition on a metric that is none of these."""
        for condition in self.conditions:
            if condition.field not in known:
                raise ConfigError(f"{where}: {unknown_word('field', condition.field, known)}")

    def observe(self, values: Mapping[str, float]) -> None:
        """Has the conditions see new values."""
        for condition in self.conditions:
            condition.observe(values)

    def remaining(self, **used: float) -> float | None:
        """The share that is left of the budget that will be used up first; None without any."""
        left = [1.0 - used[name] / budget for name, budget in self.budgets.items() if name in used]
        return max(min(left), 0.0) if left else None

    def ended(self, **used: float) -> bool:
        """Whether the work shall end, so much of each budget being used; sets `reason`.

        Seconds are known here, and a budget that is not named is not looked at.
        """
        used = {"max_seconds": self.seconds, **used}
        if self.reason is None:
            for name, budget in self.budgets.items():
                if used.get(name, 0) >= budget:
                    self.reason = f"{name} {budget:g} reached"
                    return True
            if self.conditions and all(condition.met for condition in self.conditions):
                fields = ", ".join(condition.field for condition in self.conditions)
                self.reason = f"goal reached: {fields}"
        return self.reason is not None

    def check(self, **used: float) -> None:
        """Raises `Ended` if `ended` says so."""
        if self.ended(**used):
            raise Ended(self.reason)


def read_stop_rules(
    given: Sequence[str],
    known: Collection[str] = RULES,
    fields: Collection[str] | None = None,
    option: str = "--stop",
) -> StopRules | None:
    """The rules of a command line, whose seconds count from now on; None if there are none.

    Args:
        given: ``rule=value`` each, the value in YAML; ``until`` may come several times.
        known: the rules that the command can follow.
        fields: the metrics that its conditions can be about; None: any.
        option: its name in errors.

    Raises:
        ConfigError: there is no such rule or metric, it is not one of this command, or its value
            is wrong.
    """
    if not given:
        return None
    values: dict[str, Any] = {}
    for text in given:
        name, value = split_setting(text, option=option)
        if name not in known:
            raise ConfigError(f"{option}: {unknown_word('rule', name, known)}")
        if name == "until":
            value = [*values.get(name, []), *(value if isinstance(value, list) else [value])]
        elif name in values:
            raise ConfigError(f"{option}: {name} is given twice")
        values[name] = value
    with errors_of(option):
        rules = StopRules(**values)
    if fields is not None:
        rules.check_fields(fields)
    rules.start()
    return rules


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
