"""One update of deep Q-learning on a batch: as it is, or captured as a CUDA graph."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from sb3_ext.networks.compiling import compile_fault, compiled_network
from sb3_ext.networks.optimizers import clip_gradients
from sb3_ext.off_policy.graphed import (
    CudaGraph,
    GraphedUpdate,
    addresses,
    graph_fault,
    prepare_optimizer,
)

__all__ = ["MEASURED", "EagerUpdate", "LossTerms", "compiled_pair", "graphed_update"]

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


class EagerUpdate:
    """Loss, gradient, clip and optimiser step on a batch.

    On an accelerator nothing in here looks at a value, so that it can be captured.

    Args:
        model: The DDQN that learns.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.parameters = list(model.q_net.parameters())

    def __call__(self, batch: Any) -> Tensor:
        """Make the update; returns `MEASURED`."""
        model = self.model
        terms = model._compute_loss(batch)
        for extension in model.extensions:
            extra = extension.extra_loss(model)
            if extra is not None:
                terms = terms._replace(loss=terms.loss + extra)
        for parameter in self.parameters:
            parameter.grad = None
        terms.loss.backward()
        norm = clip_gradients(self.parameters, model.max_grad_norm)
        model.policy.optimizer.step()
        with torch.no_grad():
            error = (terms.predicted - terms.target).abs()
            means = (terms.predicted.mean(), terms.target.mean(), error.mean())
            return torch.stack([terms.loss, norm, *means, error.max()])


def graphed_update(model: Any, before: GraphedUpdate | None) -> GraphedUpdate | None:
    """The captured update of a model that asks for `cuda_graphs`, or None.

    Args:
        model: The DDQN that learns.
        before: What this function returned last.

    Raises:
        ValueError: The model has extensions.
    """
    optimizer = model.policy.optimizer
    fault = graph_fault(model.device, optimizer) if model.cuda_graphs else None
    if fault is not None:
        # A saved model may have come from another machine.
        warnings.warn(f"cuda_graphs: not used, {fault}", RuntimeWarning, stacklevel=3)
    graphed = model.cuda_graphs and fault is None
    if graphed and model.extensions:
        names = ", ".join(type(each).__name__ for each in model.extensions)
        raise ValueError(f"cuda_graphs: must be False with extensions of the update ({names})")
    prepare_optimizer(optimizer, model.device, graphed)
    if not graphed:
        return None

    def depends_on() -> tuple[Any, ...]:
        """What a captured update has fixed: numbers, and where its tensors are."""
        networks = (model.q_net, model.q_net_target)
        tensors = [each for network in networks for each in network.state_dict().values()]
        numbers = (model.gamma, model.max_grad_norm, model.double_q, model.compile_networks)
        return (*numbers, *addresses(tensors, model.policy.optimizer))

    return before or GraphedUpdate(
        lambda batch: EagerUpdate(model)(batch), depends_on, lambda: CudaGraph(model.device)
    )


Compiled = tuple[nn.Module, nn.Module, Callable[[Any], Tensor], Callable[[Any], Tensor]]


def compiled_pair(model: Any, before: Compiled | None) -> Compiled:
    """The online and the target network of a model, and both compiled.

    Args:
        model: The DDQN that learns.
        before: What this function returned last; nothing is compiled twice.
    """
    online, target = model.q_net, model.q_net_target
    if before is not None and before[0] is online and before[1] is target:
        return before
    fault = compile_fault(model.device.type)
    if fault is not None:
        warnings.warn(f"compile_networks: not used, {fault}", RuntimeWarning, stacklevel=4)
        return online, target, online, target
    return online, target, compiled_network(online), compiled_network(target)
