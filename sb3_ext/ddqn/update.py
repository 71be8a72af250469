"""One update of deep Q-learning on a batch: as it is, or captured as a CUDA graph."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from sb3_ext.config.registry import Registry
from sb3_ext.ddqn import targets
from sb3_ext.networks.compiled import are_plain
from sb3_ext.networks.optimizers import clip_gradients, make_step
from sb3_ext.networks.policy_scores import action_values
from sb3_ext.off_policy.graphed import (
    CudaGraph,
    GraphedUpdate,
    addresses,
    graph_fault,
    prepare_optimizer,
)

# What every update measures; the last one is logged as a maximum.
MEASURED = ("loss", "grad_norm", "q_mean", "target_mean", "td_mean", "td_max")

Loss = Callable[..., Tensor]
"""As those of `torch.nn.functional`: of values and targets, with an argument `reduction`."""

LOSSES: Registry[Loss] = Registry("loss")
LOSSES.register("huber", functional.smooth_l1_loss)  # Huber's, with threshold 1
LOSSES.register("mae", functional.l1_loss)
LOSSES.register("mse", functional.mse_loss)


class LossTerms(NamedTuple):
    """The loss on B transitions, a scalar with gradients.

    `predicted` are the values of the chosen actions, `[B]`, and `target` what they should have
    been, `[B]`, without gradients.
    """

    loss: Tensor
    predicted: Tensor
    target: Tensor


def loss_terms(loss: str | Loss, values: Tensor, target: Tensor, batch: Any) -> LossTerms:
    """The mean loss of values `[B, A]` against targets `[B]`, with the batch's weights if any."""
    weights = getattr(batch, "weights", None)
    if loss == "huber" and weights is None:
        return LossTerms(*targets.huber_terms(values, batch.actions, target), target)
    function = LOSSES.resolve(loss) if isinstance(loss, str) else loss
    predicted = values.gather(1, batch.actions)[:, 0]
    if weights is None:
        return LossTerms(function(predicted, target), predicted, target)
    weighted = weights * function(predicted, target, reduction="none")
    return LossTerms(weighted.mean(), predicted, target)


class UpdateExtension:
    """Takes part in every update; put objects of subclasses into ``model.extensions``.

    An update calls `change_batch` of every extension, in turn, before the loss and `extra_loss` of
    every one after it. Both may draw random numbers, but a run that is resumed has to draw the
    same ones: take them from a generator that is seeded by ``model.num_updates``, which counts the
    finished ones. Models are saved without extensions, and `cuda_graphs` refuses them.
    """

    def change_batch(self, model: Any, batch: Any) -> Any:
        """The batch to learn from; tensors of the one that was sampled must not be written to."""
        return batch

    def extra_loss(self, model: Any) -> Tensor | None:
        """A scalar with gradients that is added to the loss, or None."""
        return None


def make_update(
    model: Any, parameters: list[nn.Parameter], batch: Any, plain: bool = False
) -> Tensor:
    """Loss, gradient, clip and optimiser step of a DDQN on a batch; see `updates_are_plain`.

    Returns `MEASURED`, and if the batch has `indices` then the error of every transition.

    On an accelerator nothing in here looks at a value, so that it can be captured.
    """
    terms = plain_gradients(model, batch) if plain else None
    if terms is None:
        terms = model._compute_loss(batch)
        for extension in model.extensions:
            extra = extension.extra_loss(model)
            if extra is not None:
                terms = terms._replace(loss=terms.loss + extra)
        for parameter in parameters:
            parameter.grad = None
        terms.loss.backward()
    model.ranks.average_gradients(parameters)
    norm = clip_gradients(parameters, model.max_grad_norm)
    make_step(model.policy.optimizer)
    predicted, target = terms.predicted.detach(), terms.target
    measured = [torch.stack([terms.loss.detach(), norm]), targets.measures(predicted, target)]
    if getattr(batch, "indices", None) is not None:
        measured.append((predicted - target).abs())
    return torch.cat(measured)


def updates_are_plain(model: Any, usual: Callable[..., LossTerms]) -> bool:
    """Whether updates of a DDQN, whose usual loss is given, need neither autograd nor a mode."""
    return (
        getattr(model._compute_loss, "__func__", None) is usual
        and model.loss == "huber"
        and not (model.extensions or model.autocast or model.compile_networks)
        and getattr(model.q_net, "plain_layers", None) is not None
    )


@torch.no_grad()
def plain_gradients(model: Any, batch: Any) -> LossTerms | None:
    """The usual loss on a batch, with all gradients set, where `updates_are_plain`.

    None for a batch with weights, or numbers that compiled functions do not know.
    """
    network, actions = model.q_net, batch.actions
    x = network.extract_features(batch.observations, network.features_extractor)
    if getattr(batch, "weights", None) is not None or not targets.has_huber_gradient(x, actions):
        return None
    target = model._compute_target(batch)
    if not are_plain(target) or target.shape != x.shape[:1]:
        return None
    values, set_gradients = network.plain_layers.with_gradients(x)
    loss, predicted, gradient = targets.huber_gradient(values, actions, target)
    set_gradients(gradient)
    return LossTerms(loss, predicted, target)


def graphed_update(model: Any, before: GraphedUpdate | None) -> GraphedUpdate | None:
    """The captured update of a DDQN that asks for `cuda_graphs`, `before` if there is one, or None.

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
        numbers = (model.gamma, model.max_grad_norm, model.double_q, model.loss)
        kinds = (model.autocast, model.compile_networks)
        return (*numbers, *kinds, *addresses(tensors, model.policy.optimizer))

    return before or GraphedUpdate(
        lambda batch: make_update(model, list(model.q_net.parameters()), batch),
        depends_on,
        lambda: CudaGraph(model.device),
    )


@cache
def compile_fault(device_type: str) -> str | None:
    """Why `torch.compile` does not work here, or None."""
    try:
        if device_type == "cpu":
            from torch._inductor.cpp_builder import get_cpp_compiler

            get_cpp_compiler()
        else:
            from torch.utils._triton import has_triton

            if not has_triton():
                return "it needs Triton, which does not work here (pip install 'resgym[gpu]')"
    except Exception as error:
        return f"it needs a C++ compiler, there is none that works ({type(error).__name__})"
    return None


def update_networks(model: Any) -> tuple[Callable[[Any], Tensor], Callable[[Any], Tensor]]:
    """The online and the target network of a DDQN as updates call them."""
    online, target = model.q_net, model.q_net_target
    if model.compile_networks:
        model._compiled = compiled_pair(model, model._compiled)
        online, target = model._compiled[2:]
    if model.autocast:
        online, target = (partial(action_values, each, bfloat16=True) for each in (online, target))
    return online, target


Compiled = tuple[nn.Module, nn.Module, Callable[[Any], Tensor], Callable[[Any], Tensor]]


def compiled_pair(model: Any, before: Compiled | None) -> Compiled:
    """The online and the target network of a model, and both compiled, `before` if still right."""
    online, target = model.q_net, model.q_net_target
    if before is not None and before[0] is online and before[1] is target:
        return before
    fault = compile_fault(model.device.type)
    if fault is not None:
        warnings.warn(f"compile_networks: not used, {fault}", RuntimeWarning, stacklevel=4)
        return online, target, online, target
    # Shapes are fixed: PyTorch would compile changing ones again for "any" shape, which is slower.
    compiled = [torch.compile(network, dynamic=False) for network in (online, target)]
    return online, target, compiled[0], compiled[1]
