"""A role that learns: what the trainer, the pool and the checkpoints ask of it.

`kinds.py` has a `Learner` for each kind of algorithm, with a section of its own in the
configuration. Networks are in training mode only inside an update, also when it
fails.
"""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import torch
from gymnasium.vector.utils import batch_space
from pydantic import Field, model_validator
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.utils import ConstantSchedule
from torch import nn

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.adapter.seam import (
    begin_learning,
    call_each,
    networks_were_replaced,
    num_updates,
    restart_episodes,
    to_device,
)
from sb3_ext.callbacks import CALLBACKS
from sb3_ext.callbacks.evaluation import player_of
from sb3_ext.callbacks.stopping import LastLogged
from sb3_ext.callbacks.watching import layer_statistics
from sb3_ext.checkpoints.models import buffer_of, check_finite, model_state, restore_model
from sb3_ext.checkpoints.resume import callback_states, load_callback_states
from sb3_ext.config.checks import (
    check_arguments,
    check_count,
    check_policy,
    errors_named,
    errors_of,
    from_data,
    shown,
)
from sb3_ext.config.sections import (
    Fraction,
    PositiveCount,
    PositiveNumber,
    Section,
    Size,
    accepted_by,
)
from sb3_ext.ddqn.algorithms import ALGORITHMS, with_policy_classes
from sb3_ext.ddqn.policies import OPTIMIZERS
from sb3_ext.networks.mlp import in_mode
from sb3_ext.schedules.schedules import SCHEDULES as SCHEDULES
from sb3_ext.schedules.schedules import LearningRate, Schedule, parse_schedule
from sb3_ext.two_player.hironaka import Game
from sb3_ext.types import Arguments, Metrics, StateDict

NO_END = 2**60
"""Transitions that a model is told it will learn for; nothing here depends on the number."""


class OptimizerSection(Section):
    """The optimiser of a role."""

    name: Annotated[str, accepted_by(OPTIMIZERS.resolve)]
    """name of the optimiser: adam, adamw, rmsprop, sgd, or a registered one"""
    arguments: Arguments
    """arguments of the optimiser, without the learning rate"""

    @model_validator(mode="after")
    def _arguments_fit(self) -> OptimizerSection:
        with errors_of(".arguments", ValueError):
            check_arguments(OPTIMIZERS.resolve(self.name), self.arguments)
        return self


class RolloutSection(Section):
    """How experience is collected."""

    rollout_size: Size
    """games played side by side"""
    max_rollout_steps: PositiveCount
    """moves of each game in a rollout"""
    reset_each_rollout: bool
    """start new games in each rollout; false: continue with the games of the last one"""


class TrainedRole(Section):
    """What the roles of all algorithms have; each kind of learner adds its own keys."""

    player: Literal["trained"]
    """trained, the name of a scripted player, or the path of a saved model"""
    algorithm: Annotated[str, accepted_by(ALGORITHMS.resolve)]
    """ddqn, dqn, qrdqn, ppo, ppo_mask, a2c, a registered algorithm, or module:Class"""
    algorithm_arguments: Arguments
    """further arguments of the algorithm, such as double_q"""
    policy: str
    """name of the algorithm's policy, such as HostPolicy"""
    policy_arguments: Arguments
    """arguments of the policy beside net_arch and optimizer, such as extractor"""
    net_arch: list[Any]
    """layers after the features extractor, in the net_arch language"""
    optimizer: OptimizerSection
    """the optimiser"""
    learning_rate: LearningRate
    """number, or schedule of the role's updates"""
    gamma: Fraction
    """discount factor per move"""
    max_grad_norm: PositiveNumber | None
    """largest norm of a gradient, which is clipped to it; null: no clipping"""
    rollout: RolloutSection
    """the collection of experience"""
    reward: str
    """name of a reward of the environments, such as terminal"""
    opponent: str
    """opponent in rollouts: latest (the other role as it is now), pool (earlier versions too, see
    self_play), the name of a scripted player, or the path of a saved model"""
    callbacks: list[
        Annotated[dict[str, Any], accepted_by(partial(from_data, CALLBACKS, "callback"))]
    ] = Field(default_factory=list)
    """callbacks of this role: mappings of the name, as callback, and arguments (default none)"""

    @model_validator(mode="after")
    def _arguments_fit(self) -> TrainedRole:
        for argument in sorted(self.arguments().keys() & self.algorithm_arguments.keys()):
            raise ValueError(
                f".algorithm_arguments: {argument!r} is decided by the trainer or by a key of its "
                "own, leave it out"
            )
        algorithm = ALGORITHMS.resolve(self.algorithm)
        with errors_of(".algorithm_arguments", ValueError):
            check_arguments(algorithm, self.algorithm_arguments)
        with errors_of(".policy", ValueError):
            check_policy(algorithm, self.policy, self.policy_arguments)
        return self

    def arguments(self, **more: Any) -> Arguments:
        """Arguments of the algorithm: keys of the same name, those made of others, and `more`."""
        algorithm = ALGORITHMS.resolve(self.algorithm)
        # One may hand on all that it is given.
        bases = [each for each in algorithm.__mro__ if issubclass(each, BaseAlgorithm)]
        parameters = {name for each in bases for name in inspect.signature(each).parameters}
        named = {
            name: getattr(self, name) for name in type(self).model_fields if name in parameters
        }
        return named | {
            "env": None,
            "seed": None,
            "device": "cpu",
            "learning_rate": self.rate()(0),
            "max_grad_norm": float("inf") if self.max_grad_norm is None else self.max_grad_norm,
            "policy_kwargs": {
                **with_policy_classes(self.policy_arguments, algorithm),
                "net_arch": copy.deepcopy(self.net_arch),
                "optimizer_class": OPTIMIZERS.resolve(self.optimizer.name),
                "optimizer_kwargs": dict(self.optimizer.arguments),
            },
            **more,
        }

    def rate(self) -> Schedule:
        """The schedule of the learning rate."""
        return parse_schedule(self.learning_rate, "learning_rate", "updates")


class Learner(ABC):
    """A role that learns.

    Args:
        role: its name.
        section: its part of the configuration.
        game: makes the environment.
        seed: seed of the model, its networks and its games.
        device: where all of it lives.

    Attributes:
        model: the model of SB3.
        env: its environment.
        frozen: whether `train` leaves the role out.
        player: plays the model's policy as it is at the moment of the move.
        callback: the callbacks of SB3, see `add_callback`.

    Raises:
        ConfigError: the algorithm or its policy does not accept an argument.
    """

    Section: ClassVar[type[TrainedRole]] = TrainedRole

    def __init__(self, role: str, section: Any, game: Game, seed: int, device: str) -> None:
        self.role = role
        self.section = section
        self.frozen = False
        self.rate = section.rate()
        self.env = TensorVecEnv(
            game.make_env(role, section.rollout.rollout_size, section.reward, device)
        )
        with errors_named(f"roles.{role}"):
            self.model: Any = ALGORITHMS.resolve(section.algorithm)(
                **section.arguments(env=self.env, seed=seed, device=device),
                **copy.deepcopy(section.algorithm_arguments),
            )
        self._log = LastLogged()
        self.model.set_logger(Logger(None, [self._log]))
        callbacks = [from_data(CALLBACKS, "callback", data) for data in section.callbacks]
        self.callback = CallbackList(callbacks)
        begin_learning(self.model, NO_END, self.callback)
        self.policy.set_training_mode(False)
        self.player = player_of(self.policy, role)

    @property
    def policy(self) -> Any:
        """The model's policy."""
        return self.model.policy

    @property
    def buffer(self) -> Any:
        """What it has collected."""
        return buffer_of(self.model)

    @property
    def updates(self) -> int:
        """Updates made, as the model counts them."""
        return num_updates(self.model)

    @property
    def transitions(self) -> int:
        """Transitions collected."""
        return int(self.model.num_timesteps)

    def begin(self) -> None:
        """Tell the callbacks that training starts."""
        self.model.stop_requested = False
        self.callback.on_training_start({"self": self.model, "callback": self.callback}, {})

    def now(self, schedule: Schedule) -> float:
        """The value of a schedule of this role's counters."""
        return schedule(self.transitions if schedule.unit == "transitions" else self.updates)

    @property
    def wants_to_stop(self) -> bool:
        """Whether a callback has ended training since `begin`."""
        return bool(self.model.stop_requested)

    def target_is_due(self) -> bool:
        """Whether `update_target` comes before the next update; never without such a network."""
        return False

    def update_target(self) -> None:
        """Move target networks towards the online ones."""
        raise NotImplementedError

    def update(self) -> None:
        """One update from the experience collected."""
        call_each(self.callback, "before_train")
        self.model.lr_schedule = ConstantSchedule(self.now(self.rate))
        with in_mode(self.policy, False):
            self.gradient_step()
        call_each(self.callback, "after_train")

    @abstractmethod
    def gradient_step(self) -> None:
        """Have the model make the update alone; it may leave the policy in training mode."""

    def rollout_is_due(self) -> bool:
        """Whether experience is collected after the update just made."""
        return True

    def collect(self, games: int | None = None) -> int:
        """Play and remember, exploring; returns how many transitions were made.

        ``games`` are rounded up to whole rollouts; None: one rollout.
        """
        rollout = self.section.rollout
        games = rollout.rollout_size if games is None else check_count("games", games, 0)
        before = self.transitions
        for _ in range(-(-games // rollout.rollout_size)):
            if rollout.reset_each_rollout:
                restart_episodes(self.model)
            with torch.no_grad():
                if not self.play(rollout.max_rollout_steps):
                    self.model.stop_requested = True
                    break
        return self.transitions - before

    @abstractmethod
    def play(self, steps: int) -> bool:
        """Make this many parallel steps; False if a callback ended training."""

    def add_callback(self, callback: BaseCallback) -> None:
        """Have a callback of SB3 called, from the next `begin` on."""
        if not isinstance(callback, BaseCallback):
            raise TypeError(f"callbacks: got {shown(callback)}; expected callbacks of SB3")
        callback.init_callback(self.model)
        self.callback.callbacks.append(callback)

    def seat(self, latest: Any, others: Sequence[Any] = (), latest_share: float = 1.0) -> None:
        """Seat players of the other role in this role's games, from the next move on.

        The first one answers in this share of the rows, the others in the rest, by turns.
        """
        seated = [latest]
        if others:
            rows = self.env.num_envs
            first = round(latest_share * rows)
            rest = [1 + row % len(others) for row in range(rows - first)]
            seated = [[latest, *others], [0] * first + rest]
        self.env.env_method("set_opponent", *seated)

    def set_network(self, network: nn.Module) -> None:
        """Put a network in the place of the model's, with a new target network and optimiser.

        Args:
            network: from observations of N rows (float tensors [N, ...], or a dictionary of them)
                to action values [N, A]. It becomes part of the model.

        Raises:
            TypeError: the policy has no `q_net` and `q_net_target`, or has learning rates of parts.
            ValueError: the network has no parameters, or returns another shape.
        """
        model = self.model
        policy = self.policy
        if not hasattr(policy, "q_net_target") or getattr(policy, "learning_rate_factors", None):
            raise TypeError(
                f"the networks of {type(model).__name__} cannot be replaced, whose policy is a "
                f"{type(policy).__name__}"
            )
        online = copy.deepcopy(policy.q_net)
        online.features_extractor, online.q_net = nn.Identity(), network
        online.to(model.device)
        online.set_training_mode(False)
        observations = to_device(batch_space(model.observation_space, 2).sample(), model.device)
        with torch.no_grad():
            shape = tuple(online(observations).shape)
        num_actions = int(model.action_space.n)
        if shape != (2, num_actions):
            raise ValueError(f"network: got values {shape} for N = 2; expected [N, {num_actions}]")
        rate = policy.optimizer.param_groups[0]["lr"]
        optimizer = policy.optimizer_class(online.parameters(), lr=rate, **policy.optimizer_kwargs)
        # Only now is anything changed: a network that does not fit leaves the model as it was.
        policy.q_net, policy.q_net_target = online, copy.deepcopy(online)
        policy.optimizer = optimizer
        networks_were_replaced(model)

    def state_dict(self) -> StateDict:
        """All that training depends on, as parts of a checkpoint; errors as `check_finite`."""
        self.check_finite()
        state = model_state(self.model, f"{self.role}.")
        state[f"{self.role}.callbacks"] = callback_states(self.callback)
        return state

    def load_state_dict(self, state: StateDict) -> None:
        """Restore a `state_dict`; CheckpointError if it is of another configuration."""
        restore_model(self.model, state, f"{self.role}.")
        load_callback_states(self.callback, state[f"{self.role}.callbacks"])
        self.policy.set_training_mode(False)
        # For the counters this is another learn(), as after a resume of a single model. It resets
        # an environment whose state was not saved.
        begin_learning(self.model, NO_END, self.callback, reset_num_timesteps=False)

    def check_finite(self) -> None:
        """Raise a FloatingPointError if a loss or a weight is NaN or infinite."""
        try:
            check_finite(self.model)
        except FloatingPointError as error:
            raise FloatingPointError(f"roles.{self.role}: {error}") from None

    def metrics(self, layers: bool = False) -> Metrics:
        """What was measured since the last call, by name; errors as `check_finite`.

        ``layers``: mean and deviation of weights and gradients too.
        """
        self.check_finite()
        values = {
            "learning_rate": float(self.policy.optimizer.param_groups[0]["lr"]),
            "transitions": float(self.transitions),
            "updates": float(self.updates),
        }
        if hasattr(self.model, "exploration_rate"):
            values["exploration_rate"] = float(self.model.exploration_rate)
        # The model adds the times of its own loop, which does not run here.
        recorded = set(self.model.logger.name_to_value)
        self._log.values.clear()
        self.model.dump_logs()
        for key, value in self._log.values.items():
            section, _, name = key.partition("/")
            if section in ("train", "rollout"):  # without SB3's heading
                values.setdefault(name, value)
            elif key in recorded:
                values[key] = value
        return values | (layer_statistics(self.policy) if layers else {})
