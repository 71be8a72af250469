"""How PyTorch calculates while a run lasts: switches that cost time or digits."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch

SWITCHES = {
    "deterministic": "only operations that give the same bits each time, where PyTorch has one; "
    "where it has none it warns. For CUDA: on a CPU runs repeat themselves anyway",
    "tf32": "allow TF32 matrix multiplication: faster on recent NVIDIA GPUs, lower precision",
    "detect_anomaly": "look for NaN in every gradient and name the operation that made it; updates "
    "take several times as long",
}
"""What each switch does, for people."""


@contextmanager
def numerics(
    deterministic: bool = False, tf32: bool = False, detect_anomaly: bool = False
) -> Iterator[None]:
    """The switches that are True are on in the block, see `SWITCHES`; others stay as they are."""
    with ExitStack() as after:
        if deterministic:
            warn = torch.is_deterministic_algorithms_warn_only_enabled()
            before = torch.are_deterministic_algorithms_enabled()
            after.callback(torch.use_deterministic_algorithms, before, warn_only=warn)
            # Read when CUDA begins to multiply matrices; without it cuBLAS is refused.
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
            torch.use_deterministic_algorithms(True, warn_only=True)
        if tf32:
            precision = torch.get_float32_matmul_precision()
            after.callback(torch.set_float32_matmul_precision, precision)
            torch.set_float32_matmul_precision("high")
        if detect_anomaly:
            after.enter_context(torch.autograd.set_detect_anomaly(True))
        yield
