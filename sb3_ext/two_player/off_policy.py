"""Roles that learn by an off-policy algorithm: DDQN, and SB3's and sb3-contrib's DQN and QRDQN."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Annotated, Any, ClassVar, cast

import torch
from gymnasium.vector.utils import batch_space
from pydantic import Field
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.type_aliases import TrainFreq, TrainFrequencyUnit
from stable_baselines3.common.utils import get_parameters_by_name, polyak_update
from torch import Tensor, nn

from sb3_ext.adapter.observations import to_device
from sb3_ext.adapter.sb3_private import last_observation, networks_were_replaced
from sb3_ext.cluster.chunk import ChunkWriter, side_by_side
from sb3_ext.config.registry import Registry
from sb3_ext.config.sections import (
    ConfigError,
    PositiveCount,
    PositiveFraction,
    Section,
    Size,
    Transitions,
    accepted_by,
)
from sb3_ext.networks.fields import ExplorationRate, NetArch
from sb3_ext.replay.buffers import TensorReplayBuffer
from sb3_ext.replay.prioritized import PrioritizedReplayBuffer
from sb3_ext.schedules.binding import bind_schedules
from sb3_ext.schedules.schedules import parse_schedule
from sb3_ext.two_player.experience import Given, record_steps, replaying
from sb3_ext.two_player.learner import LEARNERS, Learner, RolloutSection, TrainedRole

# The learner updates the target networks itself; the algorithms' own interval never ends.
_NEVER = 2**62

# Names of online networks that have a copy `<name>_target`: DQN and DDQN, QRDQN.
_ONLINE = ("q_net", "quantile_net")

BUFFERS: Registry[type[ReplayBuffer]] = Registry("replay buffer", ReplayBuffer)
"""Replay buffers: constructor arguments as SB3's `ReplayBuffer`."""

BUFFERS.register("prioritized", PrioritizedReplayBuffer)
BUFFERS.register("tensor", TensorReplayBuffer)


class ReplayBufferSection(Section):
    """The replay buffer of a role."""

    name: Annotated[str, accepted_by(BUFFERS.resolve)] = Field(
        description="kind of replay buffer: tensor, prioritized, or one that was registered"
    )
    size: Transitions = Field(description="capacity in transitions; memory grows as it fills")
    arguments: dict[str, Any] = Field(description="further arguments of the buffer")


class TargetUpdateSection(Section):
    """When and how far the target network follows."""

    every_updates: PositiveCount = Field(description="updates of the role between target updates")
    tau: PositiveFraction = Field(
        description="weight of the online network in a target update, in (0, 1]; 1 copies it"
    )


class OffPolicyRollout(RolloutSection):
    """How experience is collected, and how often."""

    initial_rollout_size: PositiveCount = Field(
        description="games played before the first update, rounded up to whole rollouts"
    )
    every_updates: PositiveCount = Field(description="updates of the role between rollouts")


class OffPolicyRole(TrainedRole):
    """A role that learns from a replay buffer."""

    reserved: ClassVar[frozenset[str]] = TrainedRole.reserved | {
        *("batch_size", "buffer_size", "exploration_rate", "gradient_steps", "learning_starts"),
        *("replay_buffer_class", "replay_buffer_kwargs", "replay_ratio"),
        *("target_update_interval", "target_update_unit", "tau", "train_freq"),
    }

    net_arch: NetArch = Field(description=TrainedRole.model_fields["net_arch"].description)
    exploration_rate: ExplorationRate = Field(
        description="number or schedule, the probability of a random legal action in a rollout"
    )
    batch_size: Size = Field(description="transitions of an update")
    replay_buffer: ReplayBufferSection = Field(description="the replay buffer")
    target_update: TargetUpdateSection = Field(description="the target network")
    rollout: OffPolicyRollout = Field(description="the collection of experience")


class OffPolicyLearner(Learner):
    """Updates from a replay buffer; the trainer decides when its target network follows.

    Attributes:
        update_target: moves the target network towards the online one.
    """

    Section: ClassVar[type[TrainedRole]] = OffPolicyRole

    def _build(self, seed: int, device: str) -> Any:
        model = super()._build(seed, device)
        self._bind(model)
        return model

    def _bind(self, model: Any) -> None:
        """Let rates and target updates follow the networks and the optimiser that there are."""
        exploration = parse_schedule(self.section.exploration_rate, "exploration_rate", "updates")
        bind_schedules(model, learning_rate=self.rate, exploration_rate=exploration)
        self.update_target = _target_updater(model)

    def _arguments(self) -> dict[str, Any]:
        section = self.section
        return {
            "batch_size": section.batch_size,
            "buffer_size": section.replay_buffer.size,
            "gradient_steps": 1,
            "learning_starts": 0,
            "replay_buffer_class": BUFFERS.resolve(section.replay_buffer.name),
            "replay_buffer_kwargs": dict(section.replay_buffer.arguments),
            "target_update_interval": _NEVER,
            "tau": section.target_update.tau,
            "train_freq": section.rollout.max_rollout_steps,
        }

    @property
    def has_experience(self) -> bool:  # noqa: D102
        return bool(self.model.replay_buffer.size() > 0)

    @property
    def capacity(self) -> str:  # noqa: D102
        memory = getattr(self.model.replay_buffer, "memory_bytes", lambda: 0)() / 2**20
        return f"{self.section.replay_buffer.size} transitions, {memory:.0f} MiB"

    @property
    def initial_games(self) -> int:  # noqa: D102
        return int(self.section.rollout.initial_rollout_size)

    def update(self) -> None:
        """The target network, every `target_update.every_updates` and at first; gradient step."""
        if self.updates % self.section.target_update.every_updates == 0:
            self.update_target()
        super().update()

    def gradient_step(self) -> None:  # noqa: D102
        self.model.train(gradient_steps=1, batch_size=self.section.batch_size)

    def rollout_is_due(self) -> bool:
        """Every `rollout.every_updates` updates, and after the first."""
        return bool((self.updates - 1) % self.section.rollout.every_updates == 0)

    def _play(self, steps: int) -> bool:
        return self._collect(self.env, steps, self.model.replay_buffer)

    def _collect(self, env: Any, steps: int, buffer: Any) -> bool:
        frequency = TrainFreq(steps, TrainFrequencyUnit.STEP)
        rollout = self.model.collect_rollouts(
            env, self.callback, frequency, buffer, learning_starts=0
        )
        return bool(rollout.continue_training)

    def record(self, steps: int) -> Any:
        """A `Chunk` where the model collects tensors, else what `record_steps` gives."""
        model = self.model
        if not hasattr(model, "collects_tensors"):
            nowhere = SimpleNamespace(add=lambda *_: None)
            return record_steps(model, self.env, lambda env: self._collect(env, steps, nowhere))
        writer = ChunkWriter(steps)
        for step in model.play(self.env, steps):
            writer.add(step)
        about = {"actor": 0, "generation": 0, "sequence": 0, "version": 0, "seconds": 0.0}
        return writer.finish(last_observation(model), **about)

    def take(self, parts: list[Any], steps: int) -> bool:  # noqa: D102
        if not hasattr(self.model, "collects_tensors"):
            with replaying(self.model, self.env, parts) as env:
                return self._collect(env, steps, self.model.replay_buffer)
        with self.model.collecting_from(Given(side_by_side(parts))):
            return self._play(steps)

    def forget_experience(self) -> None:
        """Empty the replay buffer."""
        self.model.replay_buffer.reset()

    def set_network(self, network: nn.Module) -> None:
        """Put a network in the place of the model's, with a new target network and optimiser.

        Args:
            network: from observations of N rows (float tensors [N, ...], or a dictionary of them)
                to action values [N, A]. It becomes part of the model.

        Raises:
            TypeError: it is no network, or the policy has no `q_net` and `q_net_target`.
            ValueError: it has no parameters, or its results have another shape.
        """
        if not isinstance(network, nn.Module):
            raise TypeError(f"a network must be a torch.nn.Module, got {network!r}")
        model, policy = self.model, self.policy
        if not (hasattr(policy, "q_net") and hasattr(policy, "q_net_target")):
            raise TypeError(f"{type(policy).__name__} has no q_net to replace")
        if getattr(policy, "learning_rate_factors", None):
            raise TypeError("a network with learning_rate_factors stays as it is")
        if not list(network.parameters()):
            raise ValueError("a network that learns needs parameters, got one without any")
        online = copy.deepcopy(policy.q_net)
        online.features_extractor, online.q_net = nn.Identity(), network
        online.to(model.device)
        online.set_training_mode(False)
        num_actions = int(model.action_space.n)
        observations: Any = batch_space(model.observation_space, 2).sample()
        with torch.no_grad():
            values = online(to_device(observations, model.device))
        given = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
        if given != (2, num_actions):
            need = f"a network must return [N, {num_actions}] values"
            raise ValueError(f"{need}, got {given} for N = 2")
        # Only now is anything changed: a network that does not fit leaves the model as it was.
        policy.q_net, policy.q_net_target = online, copy.deepcopy(online)
        rate = policy.optimizer.param_groups[0]["lr"]
        policy.optimizer = policy.optimizer_class(
            online.parameters(), lr=rate, **policy.optimizer_kwargs
        )
        networks_were_replaced(model)
        self._bind(model)


LEARNERS[OffPolicyAlgorithm] = OffPolicyLearner


def _target_updater(model: Any) -> Callable[[], None]:
    if hasattr(model, "update_target"):
        return cast("Callable[[], None]", model.update_target)
    policy = model.policy
    name = next((each for each in _ONLINE if hasattr(policy, f"{each}_target")), None)
    if name is None:
        raise ConfigError(
            f"algorithm: {type(policy).__name__} has no network and target network named "
            f"{' or '.join(_ONLINE)}, nor has its algorithm update_target()"
        )
    online, target = getattr(policy, name), getattr(policy, f"{name}_target")

    def tensors(network: nn.Module) -> list[Tensor]:
        return [*network.parameters(), *get_parameters_by_name(network, ["running_"])]

    return lambda: polyak_update(tensors(online), tensors(target), model.tau)
