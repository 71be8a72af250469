"""Roles that learn: off-policy by DDQN, DQN or QRDQN, on-policy by PPO, A2C or MaskablePPO.

Two of them may share one encoder: what one learns of positions the other one sees with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.type_aliases import TrainFreq, TrainFrequencyUnit
from stable_baselines3.common.utils import ConstantSchedule, get_parameters_by_name, polyak_update
from torch import nn

from sb3_ext.config.checks import Registry
from sb3_ext.config.sections import (
    Fraction,
    NonNegative,
    PositiveCount,
    PositiveFraction,
    PositiveNumber,
    Section,
    Size,
    Transitions,
    accepted_by,
)
from sb3_ext.ddqn.algorithms import ALGORITHMS
from sb3_ext.networks.mlp import NetArch, Widths
from sb3_ext.replay.buffers import TensorReplayBuffer
from sb3_ext.replay.prioritized import PrioritizedReplayBuffer
from sb3_ext.schedules.schedules import ExplorationRate, parse_schedule
from sb3_ext.two_player.learner import Learner, RolloutSection, TrainedRole
from sb3_ext.types import Arguments

BUFFERS: Registry[type[ReplayBuffer]] = Registry("replay buffer", ReplayBuffer)
"""Replay buffers: constructor arguments as SB3's `ReplayBuffer`."""

BUFFERS.update(prioritized=PrioritizedReplayBuffer, tensor=TensorReplayBuffer)


class ReplayBufferSection(Section):
    """The replay buffer of a role."""

    name: Annotated[str, accepted_by(BUFFERS.resolve)]
    """kind of replay buffer: tensor, prioritized, or a registered one"""
    size: Transitions
    """capacity in transitions; the buffer takes memory as it fills"""
    arguments: Arguments
    """further arguments of the buffer"""


class TargetUpdateSection(Section):
    """When and how far the target network follows."""

    every_updates: PositiveCount
    """updates of the role between target updates"""
    tau: PositiveFraction
    """weight of the online network in a target update, in (0, 1]; 1 copies it"""


class OffPolicyRollout(RolloutSection):
    """How experience is collected, and how often."""

    initial_rollout_size: PositiveCount
    """games played before the first update, rounded up to whole rollouts"""
    every_updates: PositiveCount
    """updates of the role between rollouts"""


class OffPolicyRole(TrainedRole):
    """A role that learns from a replay buffer."""

    net_arch: NetArch
    """layers after the features extractor, in the net_arch language"""
    exploration_rate: ExplorationRate
    """probability of a random legal action in a rollout, a number or a schedule"""
    batch_size: Size
    """transitions in a batch"""
    replay_buffer: ReplayBufferSection
    """the replay buffer"""
    target_update: TargetUpdateSection
    """the target network"""
    rollout: OffPolicyRollout
    """the collection of experience"""

    def arguments(self, **more: Any) -> Arguments:  # noqa: D102
        return super().arguments(
            buffer_size=self.replay_buffer.size,
            gradient_steps=1,
            learning_starts=0,
            replay_buffer_class=BUFFERS.resolve(self.replay_buffer.name),
            replay_buffer_kwargs=dict(self.replay_buffer.arguments),
            # The learner updates the target networks itself; the algorithms' interval never ends.
            target_update_interval=2**62,
            tau=self.target_update.tau,
            train_freq=self.rollout.max_rollout_steps,
            **more,
        )


class OffPolicyLearner(Learner):
    """Updates from a replay buffer; the trainer decides when its target network follows."""

    Section = OffPolicyRole

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        rate = self.section.exploration_rate
        self.exploration = parse_schedule(rate, "exploration_rate", "updates")
        # SB3 explores with the rate of the step before.
        self.model.exploration_rate = self.now(self.exploration)

    def update_target(self) -> None:  # noqa: D102
        if hasattr(self.model, "update_target"):
            self.model.update_target()
            return
        tau = self.model.tau
        for online, target in target_pairs(self.policy):
            polyak_update(online.parameters(), target.parameters(), tau)
            # The running means and variances of batch normalisation are not parameters.
            online_statistics = get_parameters_by_name(online, ["running_"])
            target_statistics = get_parameters_by_name(target, ["running_"])
            polyak_update(online_statistics, target_statistics, tau)

    def target_is_due(self) -> bool:
        """Every `target_update.every_updates` updates, and at first."""
        return bool(self.updates % self.section.target_update.every_updates == 0)

    def gradient_step(self) -> None:  # noqa: D102
        self.model.train(gradient_steps=1, batch_size=self.section.batch_size)

    def rollout_is_due(self) -> bool:
        """Every `rollout.every_updates` updates, and after the first."""
        return bool((self.updates - 1) % self.section.rollout.every_updates == 0)

    def play(self, steps: int) -> bool:  # noqa: D102
        self.model.exploration_schedule = ConstantSchedule(self.now(self.exploration))
        rollout = self.model.collect_rollouts(
            self.env,
            self.callback,
            TrainFreq(steps, TrainFrequencyUnit.STEP),
            self.buffer,
            learning_starts=0,
        )
        return bool(rollout.continue_training)


def target_pairs(policy: nn.Module) -> list[tuple[Any, Any]]:
    """The networks of a policy that have a target network ``<name>_target``, with it."""
    own = dict(policy.named_children())
    return [(own[name], own[f"{name}_target"]) for name in own if f"{name}_target" in own]


class OnPolicyRole(TrainedRole):
    """A role that learns from what it has just played."""

    net_arch: Widths
    """layers after the features extractor, in the net_arch language"""
    gae_lambda: Fraction
    """lambda of the generalised advantage estimator: 0 looks one move ahead, 1 to the game's end"""
    ent_coef: NonNegative
    """weight of the entropy in the loss"""
    vf_coef: NonNegative
    """weight of the value loss in the loss"""

    def arguments(self, **more: Any) -> Arguments:  # noqa: D102
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

    def gradient_step(self) -> None:  # noqa: D102
        self.model.train()

    def play(self, steps: int) -> bool:  # noqa: D102
        return bool(self.model.collect_rollouts(self.env, self.callback, self.buffer, steps))


class PPOLearner(OnPolicyLearner):
    """PPO has some keys more."""

    Section = PPORole


LEARNERS: dict[type[BaseAlgorithm], type[Learner]] = {
    OffPolicyAlgorithm: OffPolicyLearner,
    OnPolicyAlgorithm: OnPolicyLearner,
    PPO: PPOLearner,
    MaskablePPO: PPOLearner,
}
"""Algorithm, or a class that it is derived from -> what trains it."""


def learner_of(algorithm: str) -> type[Learner]:
    """The kind of learner of an algorithm; of an unknown one a TypeError or ValueError tells."""
    kind = ALGORITHMS.resolve(algorithm)
    for base in kind.__mro__:
        if base in LEARNERS:
            return LEARNERS[base]
    raise ValueError(f"{algorithm!r}: {kind.__name__} is of no class in LEARNERS")


def share_encoder(learners: Mapping[str, Learner]) -> None:
    """Lets the features extractors of two roles use the same memory wherever they can.

    Weights of one name and one shape are one from now on, with the first role's values; what only
    one role is told (the agent the host's axes) enters through weights of its own. Every role's
    optimiser continues moving all of its network. Target networks stay apart, and begin as copies.

    Raises:
        ValueError: no weights have the same name and shape.
    """
    pairs, extractors = [], []
    for learner in learners.values():
        own = target_pairs(learner.policy)
        pairs += own
        # A network with a target has an extractor of its own; other policies have one themselves.
        extractors.append((own[0][0] if own else learner.policy).features_extractor)
    first, second = (dict(extractor.named_parameters()) for extractor in extractors)
    shared = [name for name in second if name in first and first[name].shape == second[name].shape]
    if not shared:
        raise ValueError("the features extractors of the roles have no weights of one shape")
    for name in shared:
        second[name].data = first[name].data
    for online, target in pairs:
        target.load_state_dict(online.state_dict())
