"""Linear layers with ReLU between them as one operation, on CPUs.

PyTorch multiplies float32 matrices with MKL, which keeps to 256-bit instructions on processors that
are not Intel's. On one with 512-bit ones oneDNN, which PyTorch brings along too, takes half of the
time; on an Intel processor MKL was the faster. Both are float32 arithmetic with sums in another
order. Which one it is depends on the processor and on shapes alone, so that a run repeats itself.
oneDNN prepares itself for every shape anew: it is no gain where the number of rows changes from
call to call.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from sb3_ext.networks.compiled import are_plain

_LEAST_PRODUCTS = 2**20  # below so many multiplications oneDNN's call costs more than it saves
_BLOCK = 1024
"""Rows of a pass. Larger memory comes from the system anew at every call, for twice the time."""


class PlainLayers(nn.Sequential):
    """Modules in a row. Linear layers and ReLU are one operation where they can be.

    They can be for float32 numbers on a CPU, without autocast, compiler and hooks; the result and
    the gradients are those of the modules up to rounding.
    """

    def forward(self, x: Tensor) -> Tensor:
        """From [N, I] to [N, O]."""
        weights, activated = _layers(self)
        if not weights or x.dim() != 2 or not _are_plain(x, *weights):
            return super().forward(x)
        x = x.relu() if activated[0] else x
        if torch.is_grad_enabled():
            result: Tensor = _Layers.apply(x, activated, *weights)  # type: ignore[no-untyped-call]
            return result
        parts = [_through(part, activated, weights)[-1] for part in x.split(_BLOCK)]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    @property
    def is_plain(self) -> bool:
        """Whether `with_gradients` can do without autograd; training mode means nothing then."""
        weights, _ = _layers(self)
        free = (
            each.requires_grad and not (each._backward_hooks or each._post_accumulate_grad_hooks)
            for each in weights
        )
        return bool(weights) and are_plain(*weights) and not has_hooks(self) and all(free)

    @torch.no_grad()
    def with_gradients(self, x: Tensor) -> tuple[Tensor, Callable[[Tensor], None]]:
        """What a call gives [N, O], and what sets all weights' gradients from that of it [N, O].

        For float32 rows on a CPU where `is_plain`. Without autograd, whose bookkeeping takes a
        tenth of the time of a small network.
        """
        weights, activated = _layers(self)
        given = _through(x.relu() if activated[0] else x, activated, weights)

        @torch.no_grad()
        def set_gradients(gradient: Tensor) -> None:
            wanted = [True] * len(weights)
            _, *found = _gradients(given, activated, weights[::2], gradient, False, wanted)
            for weight, each in zip(weights, found, strict=True):
                weight.grad = each

        return given[-1], set_gradients


def _are_plain(*given: Tensor) -> bool:
    changed = torch.is_autocast_enabled("cpu") or torch.jit.is_tracing()
    return not changed and are_plain(*given)


def _layers(network: nn.Module) -> tuple[list[Tensor], list[bool]]:
    """Weight and bias of every layer, and whether a ReLU stands before and after each.

    Without any if the modules are not linear layers and ReLU, all of them called in the usual way.
    """
    weights: list[Any] = []
    activated = [False]
    for module in _in_a_row(network):
        if type(module) is nn.ReLU:
            activated[-1] = True
        elif type(module) is nn.Linear and module._parameters["bias"] is not None:
            weights += module._parameters.values()
            activated.append(False)
        else:
            return [], []
    return weights, activated


def _in_a_row(network: nn.Module) -> Iterator[nn.Module | None]:
    """The modules of sequences in sequences; None for one with hooks."""
    for module in network._modules.values():
        if module is None or has_hooks(module):
            yield None
        elif isinstance(module, nn.Sequential) and type(module).forward is nn.Sequential.forward:
            yield from _in_a_row(module)
        else:
            yield module


def has_hooks(module: nn.Module) -> bool:
    """Whether somebody listens to a module's calls, or has replaced them."""
    own = vars(module)
    return bool(
        own["_forward_hooks"]
        or own["_forward_pre_hooks"]
        or own["_backward_hooks"]
        or own["_backward_pre_hooks"]
        or "forward" in own
    )


@cache
def _onednn() -> Callable[..., Tensor] | None:
    """The operator of oneDNN where it is the faster one: on x86 processors that are not Intel's.

    It is one that PyTorch's compiler uses.
    """
    try:
        about = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:  # no Linux
        about = platform.processor()
    if "GenuineIntel" in about or platform.machine().lower() not in ("amd64", "x86_64"):
        return None
    try:
        operator = torch.ops.mkldnn._linear_pointwise.default
        some = torch.zeros(2, 2)
        operator(some, some, some[0], "relu", [], "")
    except (AttributeError, RuntimeError, TypeError):  # another PyTorch
        return None
    return operator  # type: ignore[no-any-return]


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, relu: bool = False) -> Tensor:
    """``x @ weight.T + bias`` [N, O] of [N, I] and [O, I], negative results becoming 0 if asked."""
    if len(x) * weight.numel() >= _LEAST_PRODUCTS and (operator := _onednn()) is not None:
        return operator(x, weight, bias, "relu" if relu else "none", [], "")
    result = x.mm(weight.t()) if bias is None else torch.addmm(bias, x, weight.t())
    return result.relu_() if relu else result


def _through(x: Tensor, activated: list[bool], weights: Sequence[Tensor]) -> list[Tensor]:
    """The input and what every layer gives."""
    given = [x]
    for number, relu in enumerate(activated[1:]):
        weight, bias = weights[2 * number : 2 * number + 2]
        given.append(_linear(given[-1], weight, bias, relu))
    return given


def _gradients(
    given: Sequence[Tensor],
    activated: Sequence[bool],
    weights: Sequence[Tensor],
    gradient: Tensor,
    of_x: bool,
    wanted: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    """Of x if asked for, and of the wanted ones of each layer's weight and bias.

    From `_through` come the inputs and results that are `given`, and from behind the `gradient`.
    """
    result: list[Tensor | None] = []  # from the last layer on, bias before weight
    for number in reversed(range(len(weights))):
        if activated[number + 1]:  # a ReLU lets through where it gave more than 0
            gradient = torch.ops.aten.threshold_backward(gradient, given[number + 1], 0)
        result.append(gradient.sum(0) if wanted[2 * number + 1] else None)
        of_weight = wanted[2 * number]
        result.append(_linear(gradient.t(), given[number].t()) if of_weight else None)
        if number or of_x:
            gradient = _linear(gradient, weights[number].t())
    return gradient if of_x else None, *reversed(result)


class _Layers(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Tensor, activated: list[bool], *weights: Tensor) -> Tensor:
        given = _through(x, activated, weights)
        context.activated = activated
        context.save_for_backward(*given, *weights[::2])
        return given[-1]

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        saved, count = context.saved_tensors, len(context.activated)
        of_x, _, *wanted = context.needs_input_grad
        x, *others = _gradients(
            saved[:count], context.activated, saved[count:], gradient, of_x, wanted
        )
        return x, None, *others
