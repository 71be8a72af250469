"""Where the values come from that conditions are about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter, Logger

from sb3_ext.adapter.sb3_private import num_updates
from sb3_ext.callbacks.rho_evaluation import RhoEvaluation
from sb3_ext.checkpoints.resume import walk_callbacks
from sb3_ext.runs.stopping import Condition


class LastLogged(KVWriter):
    """Keeps the numbers that a logger wrote last, by name.

    Args:
        fields: the names that are kept; None: all.
    """

    def __init__(self, fields: frozenset[str] | None = None) -> None:
        self.fields = fields
        self.values: dict[str, float] = {}

    def write(self, key_values: dict[str, Any], key_excluded: Any, step: int = 0) -> None:
        """Takes what is written to a log."""
        for key in key_values if self.fields is None else self.fields & key_values.keys():
            if hasattr(key_values[key], "__float__"):
                self.values[key] = float(key_values[key])

    def close(self) -> None:
        """Nothing is held open."""


class MetricFeed(LastLogged):
    """Hands out each value once: of `RhoEvaluation` as soon as it is measured, of logs as written.

    ``rho/<opponent>`` and ``rho/score`` come from the evaluations among the callbacks, if there are
    any; ``updates`` and ``transitions`` are always there; everything else under its name in the
    log. When logs are written by time, as is the default, what is decided by them is not
    repeatable: use ``log_interval_updates`` then.

    Args:
        fields: the metrics that are wanted; others are not kept.
    """

    def __init__(self, fields: Iterable[str]) -> None:
        super().__init__(frozenset(fields))
        self._evaluations: list[RhoEvaluation] = []
        self._seen: list[int] = []
        self._logger: Logger | None = None

    def start(self, callback: BaseCallback) -> None:
        """Finds the sources; call it when training starts."""
        self.stop()
        self._evaluations = [
            each
            for each in walk_callbacks(callback.locals.get("callback"))
            if isinstance(each, RhoEvaluation)
        ]
        self._seen = (self._seen + [0] * len(self._evaluations))[: len(self._evaluations)]
        self._logger = callback.logger
        self._logger.output_formats.append(self)

    def stop(self) -> None:
        """Lets go of the log; again is harmless."""
        if self._logger is not None:
            if self in self._logger.output_formats:
                self._logger.output_formats.remove(self)
            self._logger = None

    def show(self, model: Any, conditions: Sequence[Condition]) -> None:
        """Has conditions observe the values since the last call, the oldest first."""
        for values in self._take(model):
            for condition in conditions:
                condition.observe(values)

    def _take(self, model: Any) -> list[dict[str, float]]:
        counters = {"transitions": float(model.num_timesteps), "updates": float(num_updates(model))}
        logged, self.values = self.values, {}
        batches = [counters]
        for number, evaluation in enumerate(self._evaluations):
            for entry in evaluation.history[self._seen[number] :]:
                values = {f"rho/{name}": value for name, value in entry["rho"].items()}
                batches.append({**values, "rho/score": entry["score"]})
            self._seen[number] = len(evaluation.history)
        if self._evaluations:
            logged = {k: v for k, v in logged.items() if not k.startswith("rho/")}
        return [*batches, logged] if logged else batches

    def state_dict(self) -> dict[str, Any]:
        """How many evaluations were handed out, and what was logged since."""
        return {"logged": dict(self.values), "seen": list(self._seen)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where `state_dict` was taken."""
        self._seen, self.values = list(state["seen"]), dict(state["logged"])
