"""Where games live, and whether it costs nothing to look at them."""

from __future__ import annotations

import torch


def is_host_memory(device: torch.device) -> bool:
    """Whether data lies where a value can be read without waiting for a queue of work.

    On the CPU the hot path looks at the data and handles only the rows that need it. Elsewhere a
    look would stall the device: every row is handled, and a mask takes the right ones. Both ways
    give the same bits; tests play the second one on the CPU by replacing this function.
    """
    return device.type == "cpu"


def resolve_device(device: torch.device | str) -> torch.device:
    """The torch device of a name.

    Raises:
        ValueError: no such device here.
    """
    try:
        resolved = torch.device(device)
        if resolved.type == "meta":
            raise RuntimeError("tensors without data cannot hold a game")
        torch.empty(0, device=resolved)
    except (RuntimeError, AssertionError, TypeError) as error:
        available = ["cpu"] + [f"cuda:{index}" for index in range(torch.cuda.device_count())]
        raise ValueError(f"device must be one of {available}, got {str(device)!r}") from error
    return resolved
