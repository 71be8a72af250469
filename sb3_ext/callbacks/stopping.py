"""Callbacks that act on metrics: end training, or start the next stage of a curriculum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

from sb3_ext.adapter.seam import num_updates, progress_remaining
from sb3_ext.callbacks.base import NumberWriter, as_tensor, stop_training
from sb3_ext.config.checks import check_number, shown
from sb3_ext.runs.stopping import Condition, Rules, StopRules, load_states, parse_conditions
from sb3_ext.types import Metrics, StateDict


class LastLogged(NumberWriter):
    """Keep the latest logged numbers, by name."""

    def __init__(self) -> None:
        self.values: Metrics = {}

    def take(self, numbers: Metrics, step: int) -> None:
        """See `NumberWriter`."""
        self.values |= numbers


class ByConditions(BaseCallback, NumberWriter):
    """Pass every new value to its `conditions` once.

    Values ``rho/...`` come from the evaluations among the callbacks when they are measured,
    ``updates`` and ``transitions`` at every step, and everything else from the log when it is
    written. By default logs are written by time, so decisions on logged values are not repeatable;
    use ``log_interval_updates`` for that.
    """

    conditions: Sequence[Condition]

    def observe(self, values: Metrics) -> None:
        """Takes values that are new."""
        for condition in self.conditions:
            condition.observe(values)

    def take(self, numbers: Metrics, step: int) -> None:
        """See `NumberWriter`."""
        self.observe({k: v for k, v in numbers.items() if not k.startswith("rho/")})

    def _on_training_start(self) -> None:
        if self not in self.logger.output_formats:
            self.logger.output_formats.append(self)

    def _on_training_end(self) -> None:
        self.logger.output_formats.remove(self)

    def _on_step(self) -> bool:
        self.observe({"transitions": self.model.num_timesteps, "updates": num_updates(self.model)})
        return True

    def _states(self) -> list[StateDict]:
        return [condition.state_dict() for condition in self.conditions]


class StopConditions(ByConditions):
    """End `learn` by rules that count from the beginning of the run.

    The arguments are those of `Rules`. Seconds count training time over all resumes. The model
    still learns from what was collected, so the numbers are lower bounds.
    """

    __signature__ = Rules.__signature__

    def __init__(self, **rules: Any) -> None:
        super().__init__()
        self.rules = StopRules(**rules)
        self.conditions = self.rules.conditions
        self._episodes = 0

    @property
    def reason(self) -> str | None:
        """The rule that ended training, or None."""
        return self.rules.reason

    def _on_training_start(self) -> None:
        super()._on_training_start()
        self.rules.reason = None
        self.rules.start()
        self._check()

    def _on_step(self) -> bool:
        super()._on_step()
        if "max_episodes" in self.rules.budgets:
            self._episodes += int(as_tensor(self.locals, "dones").sum())
        return self._check()

    def after_train(self) -> None:
        """Called by our algorithms after every block of updates."""
        self._check()

    def _check(self) -> bool:
        """What `_on_step` has to return."""
        ended = self.rules.ended(
            max_updates=num_updates(self.model),
            max_timesteps=self.model.num_timesteps,
            max_episodes=self._episodes,
        )
        return not ended or stop_training(self.model)

    def _on_training_end(self) -> None:
        super()._on_training_end()
        self.rules.pause()

    def state_dict(self) -> StateDict:
        """Return the used budgets that the model does not count, and the state of conditions."""
        return {
            "conditions": self._states(),
            "episodes": self._episodes,
            "seconds": self.rules.seconds,
        }

    def load_state_dict(self, state: StateDict) -> None:
        """Continue from a saved `state_dict`; a ValueError if there were other conditions."""
        load_states(self.conditions, state["conditions"])
        self._episodes = state["episodes"]
        self.rules.pause()
        self.rules.earlier_seconds = state["seconds"]


def check_stages(env: VecEnv) -> None:
    """An environment without `set_stage` is an error."""
    if not env.has_attr("set_stage"):
        raise ValueError(f"env must have set_stage, as those of resgym, got {shown(env)}")


class Curriculum(ByConditions):
    """Call `set_stage` of the environment, and start the next stage when all conditions hold.

    A row changes when its next episode begins. The environments of `resgym` accept ``num_points``
    and ``max_value``, the sizes of random starts, up to their own; shapes do not change. So a
    learner can begin with few points and small numbers::

        Curriculum([
            {"num_points": 5, "max_value": 5, "until": Bound("rho/choose_first", lower=0.2)},
            {"num_points": 10, "until": {"condition": "bound", "field": "updates", "lower": 5000}},
            {},
        ])

    Conditions can name the metrics of `ByConditions`. `RhoEvaluation` measures full-sized starts
    unless it has other sizes; put it before this callback in the list. Logs ``curriculum/stage``,
    from 0.

    Args:
        stages: for each, the keyword arguments of `set_stage`, and ``until``, the condition or
            conditions to start the next stage. The last stage has no ``until``.

    Attributes:
        stage: number of the current stage.
    """

    def __init__(self, stages: Sequence[Mapping[str, Any]]) -> None:
        super().__init__()
        before = stages[:-1]
        last = stages[-1:]
        if not last or "until" in last[0] or not all("until" in stage for stage in before):
            raise ValueError(f"stages: each but the last needs 'until', got {shown(stages)}")
        self.settings = [{k: v for k, v in stage.items() if k != "until"} for stage in stages]
        self.until = [
            parse_conditions(stage["until"], f"stages[{number}].until")
            for number, stage in enumerate(before)
        ]
        self.until.append([])
        self.stage = 0

    @property
    def conditions(self) -> Sequence[Condition]:  # type: ignore[override]
        """The conditions of the current stage; each stage measures anew."""
        return self.until[self.stage]

    def _on_training_start(self) -> None:
        check_stages(self.training_env)
        # All of them, so that a mistake in a later stage is found now.
        for settings in [*self.settings, self.settings[self.stage]]:
            self.training_env.env_method("set_stage", **settings)
        super()._on_training_start()

    def _on_step(self) -> bool:
        super()._on_step()
        if self.conditions and all(condition.met for condition in self.conditions):
            self.stage += 1
            self.training_env.env_method("set_stage", **self.settings[self.stage])
        self.logger.record("curriculum/stage", self.stage)
        return True

    def state_dict(self) -> StateDict:
        """Return the stage, and the state of its conditions."""
        return {"conditions": self._states(), "stage": self.stage}

    def load_state_dict(self, state: StateDict) -> None:
        """Continue from a saved `state_dict`; a ValueError if there were other stages."""
        stage = state["stage"]
        if not 0 <= stage < len(self.settings):
            raise ValueError(f"stage: got {stage}, there are {len(self.settings)}")
        load_states(self.until[stage], state["conditions"], f"stages[{stage}].until")
        self.stage = stage


class GrowingStarts(BaseCallback):
    """Begin with starts of a fifth of the environment's sizes, and let them grow in eight steps.

    Calls `set_stage` of the environment, as `Curriculum` does, and logs ``curriculum/size``.

    Args:
        part: part of `learn` after which starts have the full sizes, above 0, at most 1.
    """

    def __init__(self, part: float = 0.4) -> None:
        super().__init__()
        self.part = check_number("part", part, low=0, high=1, above=True)

    def _on_training_start(self) -> None:
        check_stages(self.training_env)
        self.tenths = 0
        self._on_step()

    def _on_step(self) -> bool:
        done = 1.0 - progress_remaining(self.model)
        tenths = min(2 + int(8 * done / self.part), 10)
        if tenths != self.tenths:
            self.tenths = tenths
            spec = self.training_env.get_attr("plan")[0].spec
            num_points = max(round(tenths * spec.max_num_points / 10), 2)
            max_value = max(round(tenths * spec.max_value / 10), 1)
            self.training_env.env_method("set_stage", num_points, max_value)
        self.logger.record("curriculum/size", tenths / 10)
        return True
