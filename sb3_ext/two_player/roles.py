"""One role of the trainer: its model, its games, and the operations of a step.

The networks are in training mode only inside a gradient step, also when it fails.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from stable_baselines3.common.logger import KVWriter, Logger
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.type_aliases import TrainFreq, TrainFrequencyUnit
from torch import nn

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.adapter.sb3_private import (
    begin_learning,
    has_observation,
    num_updates,
    restart_episodes,
)
from sb3_ext.two_player.building import build_model, replace_network, target_updater
from sb3_ext.two_player.config import TrainedRole
from sb3_ext.two_player.games import Game

__all__ = ["Learner"]


# Transitions that a model is told it will learn for; nothing here depends on the number.
_NO_END = 2**60


class _Collector(KVWriter):
    """Keeps what a model logs."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}

    def write(self, key_values: dict[str, Any], key_excluded: Any, step: int = 0) -> None:
        for key, value in key_values.items():
            if isinstance(value, (int, float, np.integer, np.floating)):
                self.values[key] = float(value)

    def close(self) -> None:
        pass


class Learner:
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
    """

    def __init__(self, role: str, section: TrainedRole, game: Game, seed: int, device: str) -> None:
        self.role, self.section, self.game = role, section, game
        self.frozen = False
        reward = section.reward
        self.env = TensorVecEnv(game.make_env(role, section.rollout.rollout_size, reward, device))
        self.model: OffPolicyAlgorithm = build_model(role, section, self.env, seed, device)
        self._target_updater = target_updater(self.model)
        self._collector = _Collector()
        self.model.set_logger(Logger(None, [self._collector]))
        self._callback = begin_learning(self.model, _NO_END)
        self.policy.set_training_mode(False)
        self.player = game.policy_player(role, lambda: self.model.policy, role)

    @property
    def policy(self) -> Any:
        """The model's policy."""
        return self.model.policy

    @property
    def updates(self) -> int:
        """Gradient steps made."""
        return num_updates(self.model)

    @property
    def transitions(self) -> int:
        """Transitions collected."""
        return int(self.model.num_timesteps)

    @property
    def has_experience(self) -> bool:
        """Whether there is anything in the replay buffer."""
        assert self.model.replay_buffer is not None
        return self.model.replay_buffer.size() > 0

    # ------------------------------------------------------------------ operations of a step

    def target_is_due(self) -> bool:
        """Whether the target network follows before the next gradient step; so also at first."""
        return self.updates % self.section.target_update.every_updates == 0

    def update_target(self) -> None:
        """Move the target network towards the online one."""
        self._target_updater()

    def gradient_step(self) -> None:
        """One update from a batch of the replay buffer."""
        try:
            self.model.train(gradient_steps=1, batch_size=self.section.batch_size)
        finally:
            if self.policy.training:
                self.policy.set_training_mode(False)

    def rollout_is_due(self) -> bool:
        """Whether experience is collected after the update just made; so also after the first."""
        return (self.updates - 1) % self.section.rollout.every_updates == 0

    def collect_rollout(self, games: int | None = None, max_steps: int | None = None) -> int:
        """Play into the replay buffer, exploring.

        Args:
            games: number of games, rounded up to whole rollouts; None: one rollout.
            max_steps: moves in each game; None: as configured.

        Returns:
            Transitions that were added.
        """
        rollout = self.section.rollout
        steps = rollout.max_rollout_steps if max_steps is None else max_steps
        games = rollout.rollout_size if games is None else games
        before = self.transitions
        buffer = self.model.replay_buffer
        assert buffer is not None
        for _ in range(-(-games // rollout.rollout_size)):
            if rollout.reset_each_rollout:
                self.restart_games()
            with torch.no_grad():
                self.model.collect_rollouts(
                    self.env,
                    self._callback,
                    TrainFreq(steps, TrainFrequencyUnit.STEP),
                    buffer,
                    learning_starts=0,
                )
        return self.transitions - before

    def restart_games(self) -> None:
        """Start a new game in every row."""
        restart_episodes(self.model)

    # ------------------------------------------------------------------ changes

    def set_opponents(self, players: list[Any], assignment: list[int] | None = None) -> None:
        """Seat players of the other role in this role's games."""
        self.game.set_opponents(self.env.venv, players, assignment)

    def set_reward(self, reward: Any) -> None:
        """Play for another reward from now on; what was collected for the old one is dropped."""
        self.game.set_reward(self.env.venv, reward)
        self.forget_experience()

    def forget_experience(self) -> None:
        """Empty the replay buffer."""
        assert self.model.replay_buffer is not None
        self.model.replay_buffer.reset()

    def set_network(self, network: nn.Module) -> None:
        """Put a network in the place of the policy's, see `replace_network`."""
        replace_network(self.model, network)
        self._target_updater = target_updater(self.model)

    def after_loading(self) -> None:
        """Whatever a state put back into the model cannot know."""
        self.policy.set_training_mode(False)
        if not has_observation(self.model):  # the environment's state was not saved
            self.restart_games()
        # For the counters this is another learn(), as after a resume of a single model.
        begin_learning(self.model, _NO_END, self._callback, reset_num_timesteps=False)

    # ------------------------------------------------------------------ numbers

    def check_finite(self) -> None:
        """Make sure that no update was spoiled.

        Raises:
            FloatingPointError: a loss or a weight is NaN or infinite.
        """
        check = getattr(self.model, "check_finite", None)
        try:
            if check is not None:
                check()
        except FloatingPointError as error:
            raise FloatingPointError(f"roles.{self.role}: {error}") from None
        for name, value in self.policy.state_dict().items():
            if value.is_floating_point() and not bool(value.isfinite().all()):
                raise FloatingPointError(
                    f"roles.{self.role}: the weights {name} became NaN or infinite by update "
                    f"{self.updates}; lower the learning rate or max_grad_norm"
                )

    def metrics(self, layers: bool = False) -> dict[str, float]:
        """What was measured since the last call, by name.

        Args:
            layers: mean and deviation of weights and gradients too.

        Raises:
            FloatingPointError: see `check_finite`.
        """
        self.check_finite()
        values = {
            "updates": float(self.updates),
            "transitions": float(self.transitions),
            "learning_rate": float(self.policy.optimizer.param_groups[0]["lr"]),
            "exploration_rate": float(getattr(self.model, "exploration_rate", 0.0)),
        }
        self.model.dump_logs()
        for key, value in self._collector.values.items():
            section, _, name = key.partition("/")
            # The trainer has its own clock; the rest keeps its name without SB3's heading.
            if section in ("train", "rollout"):
                values.setdefault(name, value)
        self._collector.values.clear()
        return values | (self._layer_metrics() if layers else {})

    def _layer_metrics(self) -> dict[str, float]:
        values = {}
        for name, parameter in self.policy.named_parameters():
            if "_target." in name:
                continue
            for kind, tensor in (("weight", parameter.detach()), ("gradient", parameter.grad)):
                if tensor is not None:
                    values[f"layers/{name}/{kind}_mean"] = float(tensor.mean())
                    values[f"layers/{name}/{kind}_std"] = float(tensor.std(correction=0))
        return values

    def close(self) -> None:
        """Close the environment."""
        self.env.close()
