"""Roles that learn by an on-policy algorithm: SB3's PPO and A2C, sb3-contrib's MaskablePPO."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge
from pydantic import Field
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.utils import ConstantSchedule

from sb3_ext.adapter.observations import each_entry
from sb3_ext.adapter.sb3_private import note_step
from sb3_ext.config.sections import Fraction, Number, PositiveCount, PositiveNumber, Size
from sb3_ext.networks.fields import Widths
from sb3_ext.two_player.experience import buffer_arrays, joined_steps, record_steps
from sb3_ext.two_player.learner import LEARNERS, Learner, TrainedRole

Weight = Annotated[float, Number, Ge(0)]


class OnPolicyRole(TrainedRole):
    """A role that learns from what it has just played."""

    reserved: ClassVar[frozenset[str]] = TrainedRole.reserved | {
        *("ent_coef", "gae_lambda", "n_steps", "vf_coef")
    }

    net_arch: Widths = Field(description=TrainedRole.model_fields["net_arch"].description)
    gae_lambda: Fraction = Field(
        description="advantages, from those of one move (0) to those of whole games (1)"
    )
    ent_coef: Weight = Field(description="weight of the entropy in the loss")
    vf_coef: Weight = Field(description="weight of the value's error in the loss")


class PPORole(OnPolicyRole):
    """A role that learns by PPO."""

    reserved: ClassVar[frozenset[str]] = OnPolicyRole.reserved | {
        *("batch_size", "clip_range", "n_epochs"),
    }

    batch_size: Size = Field(description="transitions of an update")
    n_epochs: PositiveCount = Field(description="times that a rollout is gone through")
    clip_range: PositiveNumber = Field(
        description="how far the probability of an action may change"
    )


class OnPolicyLearner(Learner):
    """Updates from the newest rollout, and plays another one after every update."""

    Section: ClassVar[type[TrainedRole]] = OnPolicyRole

    def _arguments(self) -> dict[str, Any]:
        own = self.Section.reserved - TrainedRole.reserved
        arguments = {name: getattr(self.section, name) for name in own - {"n_steps"}}
        return {**arguments, "n_steps": self.section.rollout.max_rollout_steps}

    @property
    def has_experience(self) -> bool:  # noqa: D102
        return bool(self.model.rollout_buffer.full)

    @property
    def capacity(self) -> str:  # noqa: D102
        return f"a rollout of {self.model.n_steps * self.env.num_envs} transitions"

    def gradient_step(self) -> None:  # noqa: D102
        count = self.transitions if self.rate.unit == "transitions" else self.updates
        self.model.lr_schedule = ConstantSchedule(self.rate(count))
        self.model.train()

    def collect(self, games: int | None = None, max_steps: int | None = None) -> int:
        """One rollout, which takes the place of the one before and has as many moves."""
        if max_steps not in (None, self.model.n_steps):
            raise ValueError(f"max_steps must be {self.model.n_steps}, got {max_steps}")
        return super().collect(games, max_steps)

    def _play(self, steps: int) -> bool:
        return self._collect(self.env, steps)

    def _collect(self, env: Any, steps: int) -> bool:
        buffer = self.model.rollout_buffer
        return bool(self.model.collect_rollouts(env, self.callback, buffer, steps))

    def record(self, steps: int) -> Any:
        """What `record_steps` gives, and the arrays of the rollout buffer."""
        found = record_steps(self.model, self.env, lambda env: self._collect(env, steps))
        return {**found, "buffer": buffer_arrays(self.model.rollout_buffer)}

    def take(self, parts: list[Any], steps: int) -> bool:  # noqa: D102
        model, buffer = self.model, self.model.rollout_buffer
        buffer.reset()
        self.callback.on_rollout_start()
        for actions, new_obs, rewards, dones, infos in joined_steps(parts):
            model.num_timesteps += len(rewards)
            shown = {"actions": actions, "new_obs": new_obs, "rewards": rewards}
            about = {"dones": dones, "infos": infos, "env": self.env, "self": model}
            self.callback.update_locals({**shown, **about, "rollout_buffer": buffer})
            if not self.callback.on_step():
                return False
            note_step(model, new_obs, dones, infos)
        for name, first in parts[0]["buffer"].items():
            others = (part["buffer"][name] for part in parts[1:])
            joined = each_entry(lambda *arrays: np.concatenate(arrays, 1), first, *others)
            setattr(buffer, name, joined)
        buffer.pos, buffer.full = steps, True
        self.callback.on_rollout_end()
        return True

    def forget_experience(self) -> None:
        """Empty the rollout buffer."""
        self.model.rollout_buffer.reset()


class PPOLearner(OnPolicyLearner):
    """PPO has some keys more."""

    Section: ClassVar[type[TrainedRole]] = PPORole


LEARNERS[OnPolicyAlgorithm] = OnPolicyLearner
LEARNERS[PPO] = LEARNERS[MaskablePPO] = PPOLearner
