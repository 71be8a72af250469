"""The update of deep Q-learning, in pieces that a subclass can replace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from stable_baselines3 import DQN
from torch import Tensor
from torch.optim import Optimizer

from sb3_ext.common.off_policy import TensorOffPolicy
from sb3_ext.ddqn import targets

__all__ = ["LossTerms", "QLearning", "clip_gradients"]

# What every update measures; the last one is logged as a maximum.
MEASURED = ("loss", "grad_norm", "q_mean", "target_mean", "td_mean", "td_max")


class LossTerms(NamedTuple):
    """Result of one evaluation of the loss on B sampled transitions.

    Attributes:
        loss: What is minimised, a scalar with gradients.
        predicted: Value of the chosen actions, `[B]`.
        target: What they should have been, `[B]`, without gradients.
    """

    loss: Tensor
    predicted: Tensor
    target: Tensor


class QLearning(TensorOffPolicy, DQN):
    """The learning half of `DDQN`: sampling, targets, gradients and the target network.

    Attributes:
        double_q: Whether the online network chooses the next action of a target.
        target_update_unit: `"updates"` or `"transitions"`, of `target_update_interval`.
        num_target_updates: Target updates so far.
    """

    double_q: bool
    target_update_unit: str
    num_target_updates: int

    def train(self, gradient_steps: int, batch_size: int = 256) -> None:
        """Make updates: sample, loss, gradient, clip, optimiser, target network when due.

        Args:
            gradient_steps: Number of updates.
            batch_size: Transitions of each.
        """
        assert self.replay_buffer is not None
        optimizer = self.policy.optimizer
        parameters = list(self.q_net.parameters())
        with self.training_mode(True):
            for _ in range(gradient_steps):
                batch = self.replay_buffer.sample(batch_size, env=self._vec_normalize_env)
                self._update_learning_rate(optimizer)
                terms = self._compute_loss(batch)
                for parameter in parameters:
                    parameter.grad = None
                terms.loss.backward()
                norm = clip_gradients(parameters, self.max_grad_norm)
                optimizer.step()
                self._n_updates += 1
                self._measure(terms, norm)
                by_updates = self.target_update_unit == "updates"
                if by_updates and self._n_updates % self.target_update_interval == 0:
                    self.update_target()

    def _compute_loss(self, batch: Any) -> LossTerms:
        """The loss on a batch of the replay buffer; replace it to learn something else."""
        with torch.no_grad():
            target = self._compute_target(batch)
        values = self.q_net(batch.observations)
        predicted = values.gather(1, batch.actions)[:, 0]
        return LossTerms(targets.huber_loss(predicted, target), predicted, target)

    def _compute_target(self, batch: Any) -> Tensor:
        """Targets `[B]` of a batch, from the target network and, for double Q, the online one."""
        next_obs = batch.next_observations
        legal = getattr(batch, "next_legal", None)
        if legal is None:
            legal = self.legal_actions.of_observation(next_obs)
        online = None
        if self.double_q:
            # In evaluation mode: the next observations must not enter BatchNorm's statistics.
            with self.training_mode(False):
                online = self.q_net(next_obs)
        next_value = targets.bootstrap_value(self.q_net_target(next_obs), legal, online)
        discounts = self.gamma if batch.discounts is None else batch.discounts[:, 0]
        return targets.td_target(batch.rewards[:, 0], batch.dones[:, 0], discounts, next_value)

    def _measure(self, terms: LossTerms, norm: Tensor) -> None:
        with torch.no_grad():
            error = (terms.predicted - terms.target).abs()
            self.update_sums.add(
                torch.stack(
                    [
                        terms.loss,
                        norm,
                        terms.predicted.mean(),
                        terms.target.mean(),
                        error.mean(),
                        error.max(),
                    ]
                )
            )

    def _update_learning_rate(self, optimizers: list[Optimizer] | Optimizer) -> None:
        rate = float(self.lr_schedule(self._current_progress_remaining))
        for optimizer in optimizers if isinstance(optimizers, list) else [optimizers]:
            for group in optimizer.param_groups:
                group["lr"] = rate

    def update_target(self) -> None:
        """Move the target network towards the online one with weight `tau`, whatever is due."""
        with torch.no_grad():
            target = [*self.q_net_target.parameters(), *self.batch_norm_stats_target]
            online = [*self.q_net.parameters(), *self.batch_norm_stats]
            torch._foreach_lerp_(target, online, self.tau)
        self.num_target_updates += 1

    def _on_step(self) -> None:
        if self.target_update_unit == "transitions":
            interval = self.target_update_interval
            before = self.num_timesteps - self.n_envs
            if self.num_timesteps // interval > before // interval:
                self.update_target()


def clip_gradients(parameters: Sequence[Tensor], max_norm: float) -> Tensor:
    """As `torch.nn.utils.clip_grad_norm_`, for parameters on one device and of one type.

    It skips the sorting by device and type, which takes longer than the arithmetic for networks
    of this size.

    Args:
        parameters: Those without a gradient are passed over.
        max_norm: Norm of all gradients together after this.

    Returns:
        The norm before, a scalar.
    """
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    if norm.device.type == "cpu" and float(norm) + 1e-6 <= max_norm:
        return norm  # looking at a value costs nothing here, and the factor would be 1
    torch._foreach_mul_(gradients, (max_norm / (norm + 1e-6)).clamp(max=1.0))
    return norm
