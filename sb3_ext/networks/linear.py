"""Linear layers that multiply matrices with oneDNN on x86 processors that are not Intel's.

PyTorch multiplies float32 matrices on a CPU with MKL, which keeps to 256-bit instructions on
processors that are not Intel's: on one with 512-bit ones oneDNN, which PyTorch brings along too,
was measured to take half of the time. Results are float32 arithmetic in both; sums are taken in
another order, so they differ in the last bits. On an Intel processor with 512-bit instructions MKL
was measured to be faster: 0.6 of the time where the number of rows stays the same, a third where it
changes from call to call, since oneDNN prepares itself for every shape anew. Matrices of bfloat16
numbers are oneDNN's on either; there the operator saves a pass over the result for the ReLU.

The operator is one that PyTorch's compiler uses. Where it is missing, and for other devices, types,
small matrices and under autocast, the layer is `torch.nn.Linear`. The choice depends on nothing but
shapes and types, so that a run repeats itself.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = [
    "HAS_ONEDNN",
    "MIN_PRODUCTS",
    "Linear",
    "linear",
    "linear_in_bfloat16",
    "linear_into",
]

MIN_PRODUCTS = 2**20
"""Multiplications from which on oneDNN is used; below, its call costs more than it saves."""


def _is_intel() -> bool:
    """Whether the processor is Intel's, as far as the system says."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:  # no Linux
        text = platform.processor()
    return "GenuineIntel" in text


def _find_operator(dtype: torch.dtype) -> Callable[..., Tensor] | None:
    """The operator if this processor and this PyTorch have it for numbers of a type."""
    if platform.machine().lower() not in ("amd64", "x86_64"):
        return None
    if not torch.backends.mkldnn.is_available():
        return None
    try:
        operator = torch.ops.mkldnn._linear_pointwise.default
        some = torch.zeros(2, 2, dtype=dtype)
        operator(some, some, some[0], "relu", [], "")
    except (AttributeError, RuntimeError, TypeError):
        return None
    return operator  # type: ignore[no-any-return]


_OPERATOR = None if _is_intel() else _find_operator(torch.float32)
_OPERATOR_OF_BFLOAT16 = _find_operator(torch.bfloat16)

HAS_ONEDNN = _OPERATOR is not None
"""Whether the operator is there and used."""


def _suits(x: Tensor, weight: Tensor) -> bool:
    return (
        _OPERATOR is not None
        and x.dim() == 2
        and x.shape[0] * weight.numel() >= MIN_PRODUCTS
        and x.dtype == weight.dtype == torch.float32
        and x.device.type == weight.device.type == "cpu"
        and not torch.is_autocast_enabled("cpu")
        and not torch.compiler.is_compiling()
    )


class _OneDnnLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        assert _OPERATOR is not None
        ctx.save_for_backward(x, weight)
        ctx.has_bias = bias is not None
        return _OPERATOR(x, weight, bias, "none", [], "")

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        x, weight = ctx.saved_tensors
        of_x = linear(gradient, weight.t()) if ctx.needs_input_grad[0] else None
        of_weight = linear(gradient.t(), x.t()) if ctx.needs_input_grad[1] else None
        wants_bias = ctx.has_bias and ctx.needs_input_grad[2]
        return of_x, of_weight, gradient.sum(0) if wants_bias else None


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """As `torch.nn.functional.linear`: ``x @ weight.T + bias``.

    Args:
        x: [..., I].
        weight: [O, I].
        bias: [O], or None.

    Returns:
        [..., O].
    """
    if not _suits(x, weight):
        return functional.linear(x, weight, bias)
    if torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad):
        result: Tensor = _OneDnnLinear.apply(x, weight, bias)
        return result
    assert _OPERATOR is not None
    return _OPERATOR(x, weight, bias, "none", [], "")


def linear_into(x: Tensor, weight: Tensor, bias: Tensor | None, out: Tensor) -> Tensor:
    """As `linear` without gradients, for a caller who has memory for the result.

    Args:
        x: [N, I].
        weight: [O, I].
        bias: [O], or None.
        out: [N, O]. It may be overwritten.

    Returns:
        [N, O]: `out`, or new memory where the operator insists on it.
    """
    if _suits(x, weight):
        return linear(x, weight, bias)
    if bias is None:
        return torch.mm(x, weight.t(), out=out)
    return torch.addmm(bias, x, weight.t(), out=out)


def linear_in_bfloat16(x: Tensor, weight: Tensor, bias: Tensor, relu: bool = False) -> Tensor:
    """``x @ weight.T + bias`` of bfloat16 numbers on a CPU, without gradients.

    Args:
        x: [N, I].
        weight: [O, I].
        bias: [O].
        relu: whether negative results become 0.

    Returns:
        [N, O].
    """
    if _OPERATOR_OF_BFLOAT16 is not None:
        return _OPERATOR_OF_BFLOAT16(x, weight, bias, "relu" if relu else "none", [], "")
    result = functional.linear(x, weight, bias)
    return result.relu_() if relu else result


class Linear(nn.Linear):
    """`torch.nn.Linear` with the multiplication of this module."""

    def forward(self, input: Tensor) -> Tensor:
        """From [..., I] to [..., O]."""
        return linear(input, self.weight, self.bias)
