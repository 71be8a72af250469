"""What a long run costs its machine."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

import torch

from sb3_ext.callbacks.base import PeriodicCallback


def system_statistics(device: torch.device) -> dict[str, float]:
    """Memory of this process and of its accelerator, in MiB, and the load of the machine.

    What the system does not tell is left out: ``memory_mb`` now, ``peak_memory_mb`` at most so far,
    ``gpu_memory_mb`` and ``gpu_peak_memory_mb`` of torch's tensors, ``load`` as processes that want
    a processor, mean of a minute.
    """
    found: dict[str, float] = {}
    with suppress(OSError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        found["memory_mb"] = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    with suppress(ImportError):
        import resource

        found["peak_memory_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    with suppress(AttributeError, OSError):
        found["load"] = os.getloadavg()[0]
    if device.type == "cuda":
        found["gpu_memory_mb"] = torch.cuda.memory_allocated(device) / 2**20
        found["gpu_peak_memory_mb"] = torch.cuda.max_memory_allocated(device) / 2**20
    return found


class SystemStatistics(PeriodicCallback):
    """Logs ``system/<name>`` of `system_statistics`, and ``system/processors``.

    The latter is how many processors this process has kept busy since the last time, on average.
    """

    def _on_training_start(self) -> None:
        self._before = time.process_time(), time.monotonic()

    def _on_step(self) -> bool:
        if self._is_due():
            now = time.process_time(), time.monotonic()
            used, passed = (after - before for after, before in zip(now, self._before, strict=True))
            self._before = now
            self.logger.record("system/processors", used / max(passed, 1e-9))
            for name, value in system_statistics(self.model.device).items():
                self.logger.record(f"system/{name}", value)
        return True
