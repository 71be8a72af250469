"""Roles that learn by an on-policy algorithm: SB3's PPO and A2C, sb3-contrib's MaskablePPO."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from annotated_types import Ge
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

from sb3_ext.config.sections import Fraction, Number, PositiveCount, PositiveNumber, Size
from sb3_ext.networks.fields import Widths
from sb3_ext.two_player.learner import LEARNERS, Learner, TrainedRole

Weight = Annotated[float, Number, Ge(0)]


class OnPolicyRole(TrainedRole):
    """A role that learns from what it has just played."""

    net_arch: Widths
    """layers after the features extractor, in the net_arch language"""
    gae_lambda: Fraction
    """lambda of the generalised advantage estimator: 0 looks one move ahead, 1 to the game's end"""
    ent_coef: Weight
    """weight of the entropy in the loss"""
    vf_coef: Weight
    """weight of the value loss in the loss"""

    def arguments(self, **more: Any) -> dict[str, Any]:  # noqa: D102
        return super().arguments(n_steps=self.rollout.max_rollout_steps, **more)


class PPORole(OnPolicyRole):
    """A role that learns by PPO."""

    batch_size: Size
    """transitions in a batch"""
    n_epochs: PositiveCount
    """passes over each rollout"""
    clip_range: PositiveNumber
    """largest relative change of an action's probability that still counts in the loss"""


class OnPolicyLearner(Learner):
    """Updates from the newest rollout, and plays another one after every update."""

    Section: ClassVar[type[TrainedRole]] = OnPolicyRole

    @property
    def has_experience(self) -> bool:  # noqa: D102
        return bool(self.buffer.full)

    def gradient_step(self) -> None:  # noqa: D102
        self.model.train()

    def collect(self, games: int | None = None, max_steps: int | None = None) -> int:
        """One rollout, which takes the place of the one before and has as many moves."""
        if max_steps not in (None, self.model.n_steps):
            raise ValueError(f"max_steps must be {self.model.n_steps}, got {max_steps}")
        return super().collect(games, max_steps)

    def play(self, steps: int) -> bool:  # noqa: D102
        return bool(self.model.collect_rollouts(self.env, self.callback, self.buffer, steps))


class PPOLearner(OnPolicyLearner):
    """PPO has some keys more."""

    Section: ClassVar[type[TrainedRole]] = PPORole


LEARNERS[OnPolicyAlgorithm] = OnPolicyLearner
LEARNERS[PPO] = LEARNERS[MaskablePPO] = PPOLearner
