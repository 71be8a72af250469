"""How PyTorch calculates now, for tests of the switches."""

from __future__ import annotations

import torch


def switched_on() -> tuple[bool, str, bool]:
    """Deterministic operations, precision of matrix products, the search for NaN."""
    return (
        torch.are_deterministic_algorithms_enabled(),
        torch.get_float32_matmul_precision(),
        torch.is_anomaly_enabled(),
    )
