"""Devices: whether reading values is free there, and how much memory is left."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import torch

from resgym.texts import shown

_CONTROL_GROUP = Path("/sys/fs/cgroup")
_MEMORY_TABLE = Path("/proc/meminfo")


def is_host_memory(device: torch.device) -> bool:
    """Return whether values can be read without waiting for a queue of work.

    On the CPU the hot path reads the data and handles only the rows that need it. Elsewhere reading
    would stall the device: every row is handled, and a mask selects the right ones. Both ways give
    the same bits; tests run the second one on the CPU by replacing this function.
    """
    return device.type == "cpu"


def resolve_device(device: torch.device | str) -> torch.device:
    """Return the torch device with a name.

    Raises:
        ValueError: this machine has no such device.
    """
    try:
        resolved = torch.device(device)
        if resolved.type == "meta":
            raise RuntimeError("tensors without data cannot hold a game")
        torch.empty(0, device=resolved)
    except (RuntimeError, AssertionError, TypeError) as error:
        available = ["cpu"] + [f"cuda:{index}" for index in range(torch.cuda.device_count())]
        raise ValueError(f"device must be one of {available}, got {shown(str(device))}") from error
    return resolved


def available_bytes(device: torch.device) -> int | None:
    """Return the bytes that a device can still allocate, or None where the system does not say.

    On a CPU this is the smaller of what the machine and the container (control group, version 2)
    have left. On CUDA it is what the driver reports free plus what PyTorch holds unused.
    """
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(free + unused)
    if device.type != "cpu":
        return None
    known = []
    with suppress(KeyError, OSError, ValueError):
        table = dict(line.split(":") for line in _MEMORY_TABLE.read_text().splitlines())
        known.append(int(table["MemAvailable"].split()[0]) * 1024)
    with suppress(OSError, ValueError):  # the limit may be "max": no limit
        limit, used = (
            int((_CONTROL_GROUP / f"memory.{x}").read_text()) for x in ("max", "current")
        )
        lines = (_CONTROL_GROUP / "memory.stat").read_text().splitlines()
        # Cached file pages count as used, but the system frees them on demand.
        reclaimable = int(dict(line.split() for line in lines).get("inactive_file", 0))
        known.append(max(limit - used + reclaimable, 0))
    return min(known, default=None)


def check_memory(what: str, needed: int, size: int, device: torch.device) -> None:
    """Refuse objects of ``size`` bytes each, ``needed`` in all, that do not fit on a device.

    Raises:
        ValueError: they do not fit; the message begins with ``what``.
    """
    available = available_bytes(device)
    if available is not None and needed > available:
        raise ValueError(
            f"{what} need {needed / 2**20:,.1f} MiB, but {available / 2**20:,.1f} MiB are "
            f"available on {device}; at most {available // size} fit"
        )
