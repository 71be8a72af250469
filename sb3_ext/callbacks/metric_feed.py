"""New values of metrics, for callbacks that decide by them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter, Logger

from sb3_ext.adapter.sb3_private import num_updates
from sb3_ext.callbacks.rho_evaluation import RhoEvaluation
from sb3_ext.checkpoints.resume import walk_callbacks

__all__ = ["MetricFeed"]


class MetricFeed:
    """Hands out each value once: of `RhoEvaluation` as soon as it is measured, of logs as written.

    ``rho/<opponent>`` and ``rho/score`` come from the evaluations among the callbacks, if there are
    any; ``updates`` and ``transitions`` are always there; everything else under its name in the
    log. When logs are written by time, as is the default, what is decided by them is not
    repeatable: use ``log_interval_updates`` then.

    Args:
        fields: the metrics that are wanted; others are not kept.
    """

    def __init__(self, fields: Iterable[str]) -> None:
        self._fields = frozenset(fields)
        self._evaluations: list[RhoEvaluation] = []
        self._seen: list[int] = []
        self._logger: Logger | None = None
        self._logged: dict[str, float] = {}
        self._tap = _Tap(self._logged, self._fields)

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
        self._logger.output_formats.append(self._tap)

    def stop(self) -> None:
        """Lets go of the log; again is harmless."""
        if self._logger is not None:
            if self._tap in self._logger.output_formats:
                self._logger.output_formats.remove(self._tap)
            self._logger = None

    def take(self, model: Any) -> list[dict[str, float]]:
        """The values since the last call, oldest first."""
        counters = {
            "transitions": float(model.num_timesteps),
            "updates": float(num_updates(model)),
        }
        logged = dict(self._logged)
        self._logged.clear()
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
        return {"logged": dict(self._logged), "seen": list(self._seen)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where `state_dict` was taken."""
        self._seen = list(state["seen"])
        self._logged.clear()
        self._logged.update(state["logged"])


class _Tap(KVWriter):
    """Copies what is logged under some names into a dictionary."""

    def __init__(self, target: dict[str, float], fields: frozenset[str]) -> None:
        self.target, self.fields = target, fields

    def write(
        self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0
    ) -> None:
        for key in self.fields & key_values.keys():
            if hasattr(key_values[key], "__float__"):
                self.target[key] = float(key_values[key])

    def close(self) -> None:
        """Nothing is held open."""
