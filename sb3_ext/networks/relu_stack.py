"""Stacks of linear layers and ReLU, run and differentiated without autograd.

For networks of a few layers and batches of a few hundred rows on a CPU, autograd's bookkeeping, the
calls of modules and a copy of every activation take about as long as the matrix products. Here is
the same arithmetic written out; what the networks give and their gradients are those of autograd
within rounding.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from sb3_ext.networks.linear import Linear, linear, linear_in_bfloat16, linear_into

__all__ = [
    "FASTER_FROM",
    "HAS_BFLOAT16",
    "ReluStack",
    "has_hooks",
    "run_layers",
    "stacked_layers",
]

_MOST_ROOMS = 8  # of different numbers of rows and uses

FASTER_FROM = 2**25
"""Multiplications of a call from which on bfloat16 was measured to be the faster, with one thread
and with two, where the processor multiplies matrices of such numbers."""


def _multiplies_bfloat16() -> bool:
    """Whether the processor has instructions for products of bfloat16 matrices (Intel's AMX)."""
    try:
        return bool(torch.cpu.get_capabilities()["amx_bf16"])
    except (AttributeError, KeyError, RuntimeError):  # another processor, or another PyTorch
        return False


HAS_BFLOAT16 = _multiplies_bfloat16()
"""Whether bfloat16 is worth while at all."""


class ReluStack:
    """Linear layers with ReLU between them, in the memory of modules that hold them.

    Hidden layers and gradients are written to the same memory at every call. Fresh memory of their
    size comes from the system page by page, which takes as long as the layer's product.

    Args:
        layers: from `stacked_layers`; their weights are read anew at every call.
    """

    def __init__(self, layers: list[nn.Linear]) -> None:
        self.layers = layers
        self._room: dict[tuple[bool, int], list[Tensor]] = {}
        self._gradient: Tensor | None = None
        self._parts: list[tuple[Tensor, Tensor]] = []
        self._inputs: list[Tensor] = []
        self._rounded: list[Tensor] = []

    def __call__(self, x: Tensor, keep: bool = False) -> Tensor:
        """What the layers give, without gradients.

        Args:
            x: `[B, I]` float32.
            keep: Remember what `backward` needs, until it is called.

        Returns:
            `[B, O]`, new.
        """
        *hidden, head = self.layers
        inputs = [x]
        with torch.no_grad():
            room = self._hidden(keep, len(x))
            for layer, out in zip(hidden, room, strict=True):
                x = linear_into(x, layer.weight, layer.bias, out).relu_()
                inputs.append(x)
            if keep:
                self._inputs = inputs
            return linear(x, head.weight, head.bias)

    def is_faster_in_bfloat16(self, rows: int) -> bool:
        """Whether `in_bfloat16` takes less time for so many rows; looks at nothing but sizes."""
        weights = sum(layer.in_features * layer.out_features for layer in self.layers)
        return HAS_BFLOAT16 and rows * weights >= FASTER_FROM

    def in_bfloat16(self, x: Tensor) -> Tensor:
        """What the layers give about, in bfloat16 numbers: as under PyTorch's autocast.

        Args:
            x: `[B, I]` float32.

        Returns:
            `[B, O]` float32, new.
        """
        weights = [each for layer in self.layers for each in (layer.weight, layer.bias)]
        with torch.no_grad():
            if not self._rounded:
                self._rounded = [each.bfloat16() for each in weights]
            else:
                torch._foreach_copy_(self._rounded, weights)
            x = x.bfloat16()
            last = len(self._rounded) - 2
            for number in range(0, last + 1, 2):
                weight, bias = self._rounded[number : number + 2]
                x = linear_in_bfloat16(x, weight, bias, relu=number < last)
            return x.float()

    def backward(self, gradient: Tensor) -> Tensor:
        """Sets the gradients of all weights, for the last call with `keep`.

        Args:
            gradient: Of the loss with respect to the result, `[B, O]`.

        Returns:
            The gradients of all weights as one vector: the memory that they have.
        """
        inputs, self._inputs = self._inputs, []
        if self._gradient is None:
            self._gradient, self._parts = _vector_of(self.layers)
        with torch.no_grad():
            room = self._hidden(False, len(gradient))
            for number in reversed(range(len(self.layers))):
                layer, x = self.layers[number], inputs[number]
                of_weight, of_bias = self._parts[number]
                product = linear_into(gradient.t(), x.t(), None, of_weight)
                if product is not of_weight:
                    of_weight.copy_(product)
                torch.sum(gradient, 0, out=of_bias)
                layer.weight.grad, layer.bias.grad = of_weight, of_bias
                if number > 0:
                    gradient = linear_into(gradient, layer.weight.t(), None, room[number - 1])
                    # x is what a ReLU gave: it lets the gradient through where it is positive.
                    torch.ops.aten.threshold_backward.grad_input(
                        gradient, x, 0, grad_input=gradient
                    )
        return self._gradient

    def _hidden(self, keep: bool, rows: int) -> list[Tensor]:
        """Memory `[rows, width]` for every hidden layer: what is kept, or is used and forgotten."""
        key = (keep, rows)
        if key not in self._room:
            if len(self._room) >= _MOST_ROOMS:
                self._room.clear()
            self._room[key] = [
                layer.weight.new_empty((rows, layer.out_features)) for layer in self.layers[:-1]
            ]
        return self._room[key]


def run_layers(layers: list[nn.Linear], x: Tensor) -> Tensor:
    """What layers with ReLU between them give in new memory, `[B, I]` to `[B, O]`; no gradients."""
    *hidden, head = layers
    with torch.no_grad():
        for layer in hidden:
            x = linear(x, layer.weight, layer.bias).relu_()
        return linear(x, head.weight, head.bias)


def _vector_of(layers: list[nn.Linear]) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
    """Memory for gradients as one vector, and the parts of weight and bias of every layer."""
    sizes = [each.numel() for layer in layers for each in (layer.weight, layer.bias)]
    vector = layers[0].weight.new_empty(sum(sizes))
    parts = iter(vector.split(sizes))
    return vector, [(next(parts).view_as(layer.weight), next(parts)) for layer in layers]


def stacked_layers(network: nn.Module) -> list[nn.Linear] | None:
    """The linear layers of a network that is nothing but such layers with ReLU between them.

    Args:
        network: a module, with sequences in sequences.

    Returns:
        The layers, or None: there is another module, a hook, a weight that is frozen or not
        float32 on the CPU, or a layer without a bias.
    """
    layers: list[nn.Linear] = []
    expect_linear = True
    waiting: list[nn.Module | None] = [network]  # the next one last
    while waiting:
        module = waiting.pop()
        if module is None or has_hooks(module):
            return None
        if isinstance(module, nn.Sequential) and type(module).forward is nn.Sequential.forward:
            waiting.extend(reversed(module._modules.values()))
            continue
        if not expect_linear:
            if type(module) is not nn.ReLU:
                return None
        elif isinstance(module, nn.Linear) and _is_plain(module):
            layers.append(module)
        else:
            return None
        expect_linear = not expect_linear
    return layers if layers and not expect_linear else None


def has_hooks(module: Any) -> bool:
    """Whether somebody listens to the module's calls, or has replaced them."""
    own = vars(module)
    return bool(
        "forward" in own
        or own["_forward_hooks"]
        or own["_forward_pre_hooks"]
        or own["_backward_hooks"]
        or own["_backward_pre_hooks"]
    )


def _is_plain(layer: nn.Linear) -> bool:
    if type(layer) is not Linear and type(layer) is not nn.Linear:
        return False
    for weight in layer._parameters.values():
        if (
            weight is None
            or not weight.requires_grad
            or weight.dtype is not torch.float32
            or not weight.is_cpu
            or weight._backward_hooks
            or weight._post_accumulate_grad_hooks
        ):
            return False
    return True
