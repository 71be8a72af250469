"""Easier games first: stages of the environment, one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

from sb3_ext.adapter.sb3_private import num_updates
from sb3_ext.callbacks.conditions import MetricFeed
from sb3_ext.runs.stopping import Condition, load_states, parse_conditions


class Curriculum(BaseCallback):
    """Calls `set_stage` of the environment, and goes to the next stage when all conditions hold.

    A row changes over when its next episode begins. The environments of `resgym` take
    ``num_points`` and ``max_value``, the sizes of random starts, up to those that they were made
    with; shapes stay. So one learner can begin with few points and small numbers:

        Curriculum([
            {"num_points": 5, "max_value": 5, "until": Bound("rho/choose_first", lower=0.2)},
            {"num_points": 10, "until": {"condition": "bound", "field": "updates", "lower": 5000}},
            {},
        ])

    Metrics that conditions can name are listed in `MetricFeed`. `RhoEvaluation`
    measures on full-sized starts unless it is told other sizes; put it before this in the list.
    Logs ``curriculum/stage``, from 0.

    Args:
        stages: for each, the keyword arguments of `set_stage`, and ``until``: what must hold
            to go on (one condition or a list). The last one has no ``until``.
        verbose: 1 prints a line for each change.

    Attributes:
        stage: number of the stage now.
        changes: one dict per change: stage, updates, transitions.
    """

    def __init__(self, stages: Sequence[Mapping[str, Any]], verbose: int = 0) -> None:
        super().__init__(verbose)
        if isinstance(stages, (str, Mapping)) or not isinstance(stages, Sequence):
            raise TypeError(f"stages must be a list of mappings, got {stages!r}")
        if not stages:
            raise ValueError("stages must have at least one stage, got none")
        self.settings: list[dict[str, Any]] = []
        self.until: list[list[Condition]] = []
        for number, stage in enumerate(stages):
            last = number == len(stages) - 1
            if not isinstance(stage, Mapping):
                raise TypeError(f"stages[{number}] must be a mapping, got {stage!r}")
            if ("until" in stage) == last:
                need = "no" if last else "a condition"
                raise ValueError(f"stages[{number}] needs {need} 'until'")
            until = [] if last else parse_conditions(stage["until"], f"stages[{number}].until")
            self.settings.append({key: v for key, v in stage.items() if key != "until"})
            self.until.append(until)
        self.stage = 0
        self.changes: list[dict[str, int]] = []
        self._feed = MetricFeed(condition.field for until in self.until for condition in until)

    def _on_training_start(self) -> None:
        env: VecEnv = self.training_env
        if not env.has_attr("set_stage"):
            raise ValueError(f"curriculum: the environment has no set_stage, it is {env}")
        # All of them, so that a mistake in a later stage is found now.
        for settings in [*self.settings, self.settings[self.stage]]:
            env.env_method("set_stage", **settings)
        self._feed.start(self)

    def _on_step(self) -> bool:
        conditions = self.until[self.stage]
        self._feed.show(self.model, conditions)
        if conditions and all(condition.met for condition in conditions):
            self.stage += 1
            settings = self.settings[self.stage]
            self.training_env.env_method("set_stage", **settings)
            counters = {"updates": num_updates(self.model), "transitions": self.num_timesteps}
            self.changes.append({"stage": self.stage, **counters})
            if self.verbose:
                print(f"curriculum: stage {self.stage} {settings} begins")
        self.logger.record("curriculum/stage", self.stage)
        return True

    def _on_training_end(self) -> None:
        self._feed.stop()

    def state_dict(self) -> dict[str, Any]:
        """The stage, the changes so far, and what its conditions have noted."""
        return {
            "changes": [dict(change) for change in self.changes],
            "conditions": [condition.state_dict() for condition in self.until[self.stage]],
            "feed": self._feed.state_dict(),
            "stage": self.stage,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where `state_dict` was taken; a ValueError if there were other stages."""
        stage = state["stage"]
        if not 0 <= stage < len(self.settings):
            raise ValueError(f"stage: got {stage}, there are {len(self.settings)}")
        load_states(self.until[stage], state["conditions"], f"stages[{stage}].until")
        self.stage = stage
        self.changes = [dict(change) for change in state["changes"]]
        self._feed.load_state_dict(state["feed"])
