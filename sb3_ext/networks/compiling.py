"""Networks compiled by `torch.compile`, and whether this machine can."""

from __future__ import annotations

from functools import cache

import torch
from torch import nn

__all__ = ["compile_fault", "compiled_network"]


@cache
def compile_fault(device_type: str) -> str | None:
    """Why `torch.compile` does not work here, or None.

    On a CPU it needs a C++ compiler, on CUDA Triton.
    """
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


def compiled_network(network: nn.Module) -> nn.Module:
    """The same network, compiled at its first call for each shape; shares the parameters.

    Shapes are fixed: with changing ones PyTorch would compile again for "any" shape, which is
    slower from then on.
    """
    return torch.compile(network, dynamic=False)  # type: ignore[return-value]
