"""The update of deep Q-learning, in pieces that a subclass can replace."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from stable_baselines3 import DQN
from torch import Tensor, nn
from torch.optim import Optimizer

from sb3_ext.ddqn import targets
from sb3_ext.ddqn.extensions import UpdateExtension
from sb3_ext.ddqn.stacked import StackedNetwork, stacked_network
from sb3_ext.networks.compiling import compile_fault, compiled_network
from sb3_ext.networks.optimizers import forget_tiny_moments, step_plainly
from sb3_ext.off_policy.graphed import (
    CudaGraph,
    GraphedUpdate,
    addresses,
    graph_fault,
    prepare_optimizer,
)
from sb3_ext.off_policy.loop import TensorOffPolicy

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
        cuda_graphs: Whether updates are captured.
        compile_networks: Whether updates use compiled networks.
        extensions: What takes part in every update beside the loss; not saved.
    """

    double_q: bool
    target_update_unit: str
    num_target_updates: int
    cuda_graphs: bool
    compile_networks: bool
    extensions: list[UpdateExtension]

    _graphed: GraphedUpdate | None = None
    _compiled: tuple[nn.Module, nn.Module, nn.Module, nn.Module] | None = None
    _stacks: tuple[StackedNetwork | None, StackedNetwork | None] = (None, None)
    _stacked: tuple[StackedNetwork, StackedNetwork] | None = None  # while updates use them

    def train(self, gradient_steps: int, batch_size: int = 256) -> None:
        """Make updates: sample, loss, gradient, clip, optimiser, target network when due.

        Args:
            gradient_steps: Number of updates.
            batch_size: Transitions of each.
        """
        assert self.replay_buffer is not None
        optimizer = self.policy.optimizer
        self._stacked = self._stacked_networks()
        try:
            update = self._update_function()
            # The mode means nothing to plain layers, and to set it takes as long as a small one.
            with self.training_mode(self._stacked is None):
                for _ in range(gradient_steps):
                    batch: Any = self.replay_buffer.sample(batch_size, env=self._vec_normalize_env)
                    for extension in self.extensions:
                        batch = extension.change_batch(self, batch)
                    self._update_learning_rate(optimizer)
                    measured = update(batch)
                    self._n_updates += 1
                    self.update_sums.add(measured)
                    if self._n_updates % 100 == 0 and self.device.type == "cpu":
                        forget_tiny_moments(optimizer)
                    by_updates = self.target_update_unit == "updates"
                    if by_updates and self._n_updates % self.target_update_interval == 0:
                        self.update_target()
        finally:
            self._stacked = None

    def _update_function(self) -> Callable[[Any], Tensor]:
        """What makes an update on a batch and returns what it measured: eager, or captured."""
        optimizer = self.policy.optimizer
        fault = graph_fault(self.device, optimizer) if self.cuda_graphs else None
        if fault is not None:
            # A saved model may have come from another machine.
            warnings.warn(f"cuda_graphs: not used, {fault}", RuntimeWarning, stacklevel=2)
        graphed = self.cuda_graphs and fault is None
        if graphed and self.extensions:
            names = ", ".join(type(each).__name__ for each in self.extensions)
            raise ValueError(f"cuda_graphs: must be False with extensions of the update ({names})")
        prepare_optimizer(optimizer, self.device, graphed)
        if graphed:
            if self._graphed is None:
                self._graphed = GraphedUpdate(
                    self._update, self._update_depends_on, lambda: CudaGraph(self.device)
                )
            return self._graphed
        parameters = None if self._stacked is not None else list(self.q_net.parameters())
        return lambda batch: self._update(batch, parameters)

    def _update(self, batch: Any, parameters: Sequence[Tensor] | None = None) -> Tensor:
        """Loss, gradient, clip and optimiser step on a batch; returns `MEASURED`.

        On an accelerator nothing in here looks at a value, so that it can be captured.
        """
        if self._stacked is not None:
            return self._update_stacked(batch, self._stacked[0])
        parameters = list(self.q_net.parameters()) if parameters is None else parameters
        terms = self._compute_loss(batch)
        for extension in self.extensions:
            extra = extension.extra_loss(self)
            if extra is not None:
                terms = terms._replace(loss=terms.loss + extra)
        for parameter in parameters:
            parameter.grad = None
        terms.loss.backward()
        norm = clip_gradients(parameters, self.max_grad_norm)
        self.policy.optimizer.step()
        return self._measure(terms, norm)

    def _update_depends_on(self) -> tuple[Any, ...]:
        """What a captured update has fixed: numbers, and where its tensors are."""
        networks = (self.q_net, self.q_net_target)
        tensors = [each for network in networks for each in network.state_dict().values()]
        numbers = (self.gamma, self.max_grad_norm, self.double_q, self.compile_networks)
        return (*numbers, *addresses(tensors, self.policy.optimizer))

    def _stacked_networks(self) -> tuple[StackedNetwork, StackedNetwork] | None:
        """The networks as an update needs them that does without autograd; None if it cannot."""
        own: Any = (self._compute_loss, self._measure)
        if (
            [getattr(each, "__func__", None) for each in own] != _REPLACEABLE
            or self.extensions  # they may add a loss of their own
            or self.compile_networks
            or self.device.type != "cpu"
        ):
            return None
        online = stacked_network(self.q_net, self._stacks[0])
        target = stacked_network(self.q_net_target, self._stacks[1])
        self._stacks = online, target
        return None if online is None or target is None else (online, target)

    def _update_stacked(self, batch: Any, online: StackedNetwork) -> Tensor:
        """As `_update`, with the same results within rounding."""
        with torch.no_grad():
            target = self._compute_target(batch)
            values = online(batch.observations, keep=True)
            gradient, measured = targets.huber_step(values, batch.actions[:, 0], target)
            gradient = online.backward(gradient)
            norm = float(torch.linalg.vector_norm(gradient))
            if norm + 1e-6 > self.max_grad_norm:
                gradient *= self.max_grad_norm / (norm + 1e-6)
            step_plainly(self.policy.optimizer)
            return torch.tensor([measured[0], norm, *measured[1:]])

    def _networks(self) -> tuple[Callable[[Any], Tensor], Callable[[Any], Tensor]]:
        """The online and the target network as updates call them, compiled if asked for."""
        if self._stacked is not None:
            return self._stacked
        online, target = self.q_net, self.q_net_target
        if not self.compile_networks:
            return online, target
        held = self._compiled
        if held is None or held[0] is not online or held[1] is not target:
            fault = compile_fault(self.device.type)
            if fault is not None:
                warnings.warn(f"compile_networks: not used, {fault}", RuntimeWarning, stacklevel=2)
                held = (online, target, online, target)
            else:
                held = (online, target, compiled_network(online), compiled_network(target))
            self._compiled = held
        return held[2], held[3]

    def _compute_loss(self, batch: Any) -> LossTerms:
        """The loss on a batch of the replay buffer; replace it to learn something else."""
        with torch.no_grad():
            target = self._compute_target(batch)
        values = self._networks()[0](batch.observations)
        predicted = values.gather(1, batch.actions)[:, 0]
        return LossTerms(targets.huber_loss(predicted, target), predicted, target)

    def _compute_target(self, batch: Any) -> Tensor:
        """Targets `[B]` of a batch, from the target network and, for double Q, the online one."""
        next_obs = batch.next_observations
        legal = getattr(batch, "next_legal", None)
        if legal is None:
            legal = self.legal_actions.of_observation(next_obs)
        online_net, target_net = self._networks()
        online = None
        if self.double_q:
            # In evaluation mode: the next observations must not enter BatchNorm's statistics.
            with self.training_mode(False):
                online = online_net(next_obs)
        discounts = self.gamma if batch.discounts is None else batch.discounts[:, 0]
        return targets.bootstrap_target(
            batch.rewards[:, 0],
            batch.dones[:, 0],
            discounts,
            target_net(next_obs),
            legal,
            online,
        )

    def _measure(self, terms: LossTerms, norm: Tensor) -> Tensor:
        """What `MEASURED` names."""
        with torch.no_grad():
            error = (terms.predicted - terms.target).abs()
            return torch.stack(
                [
                    terms.loss,
                    norm,
                    terms.predicted.mean(),
                    terms.target.mean(),
                    error.mean(),
                    error.max(),
                ]
            )

    def _update_learning_rate(self, optimizers: list[Optimizer] | Optimizer) -> None:
        rate = float(self.lr_schedule(self._current_progress_remaining))
        for optimizer in optimizers if isinstance(optimizers, list) else [optimizers]:
            for group in optimizer.param_groups:
                if isinstance(group["lr"], Tensor):  # a captured update reads it there
                    group["lr"].fill_(rate)
                else:
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


# An update without autograd stands for these together.
_REPLACEABLE = [QLearning._compute_loss, QLearning._measure]


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
