"""How much memory a device has left, and how to say it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

_CONTROL_GROUP = Path("/sys/fs/cgroup")
_MEMORY_TABLE = Path("/proc/meminfo")


def available_bytes(device: torch.device) -> int | None:
    """Bytes that can still be allocated on a device, or None where the system does not say.

    On a CPU this is the smaller of what the machine and what the container (control group,
    version 2) has left; on CUDA what the driver reports free plus what PyTorch holds unused.
    """
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(free + unused)
    if device.type != "cpu":
        return None
    known = [value for value in (_machine_bytes(), _container_bytes()) if value is not None]
    return min(known) if known else None


def format_bytes(count: int) -> str:
    """Bytes for people: `format_bytes(3 * 2**20)` is `'3.00 MiB'`."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.2f} {unit}"
        size /= 1024
    return f"{size:.2f} TiB"


def reserve_memory(model: Any) -> None:
    """Reserves the replay buffer of a model now; ValueError if there is too little memory."""
    allocate = getattr(getattr(model, "replay_buffer", None), "allocate", None)
    if allocate is not None:
        allocate()


def _machine_bytes() -> int | None:
    try:
        table = dict(line.split(":") for line in _MEMORY_TABLE.read_text().splitlines())
        return int(table["MemAvailable"].split()[0]) * 1024
    except (KeyError, OSError, ValueError):
        return None


def _container_bytes() -> int | None:
    try:
        limit = int((_CONTROL_GROUP / "memory.max").read_text())  # "max" is none
        used = int((_CONTROL_GROUP / "memory.current").read_text())
        lines = (_CONTROL_GROUP / "memory.stat").read_text().splitlines()
        # Pages of files that nobody uses are counted as used, but are given back on demand.
        reclaimable = int(dict(line.split() for line in lines).get("inactive_file", 0))
    except (OSError, ValueError):
        return None
    return max(limit - used + reclaimable, 0)
