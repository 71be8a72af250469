"""Where it costs nothing to look at the data."""

from __future__ import annotations

import torch

__all__ = ["can_look"]


def can_look(device: torch.device) -> bool:
    """Whether a value can be read without waiting for a queue of work.

    On the CPU the hot path looks at the data and handles only the rows that need it. Elsewhere a
    look would stall the device: every row is handled, and a mask takes the right ones. Both ways
    give the same bits; tests play the second one on the CPU by replacing this function.
    """
    return device.type == "cpu"
