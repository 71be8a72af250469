"""What a long run costs its machine, and a file that shows that it is alive."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch

from sb3_ext.adapter.sb3_private import num_updates
from sb3_ext.callbacks.base import PeriodicCallback
from sb3_ext.checkpoints.durable_files import write_text_durably
from sb3_ext.runs.folder import going_on_without
from sb3_ext.schedules.frequency import Every


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


class Heartbeat(PeriodicCallback):
    """Writes a small file every so often, by which others see that a run is alive and how far.

    It holds ``time`` (UTC), ``process`` and ``state``, ``running`` or ``ended``, with ``updates``
    and ``transitions``. A file that grows old while it says ``running`` is that of a run that hangs
    or was killed.

    Args:
        path: of the file, which is replaced as a whole; its folder is made if needed.
        every: how often (default every 60 seconds).

    Raises:
        ValueError: the path is a folder.
    """

    def __init__(
        self, path: str | os.PathLike[str], every: Every | Mapping[str, Any] | None = None
    ) -> None:
        super().__init__({"seconds": 60.0} if every is None else every)
        self.path = Path(path)
        if self.path.is_dir():
            raise ValueError(f"path must be a file, got the folder {os.fspath(path)!r}")

    def _on_training_start(self) -> None:
        self._beat("running")

    def _on_step(self) -> bool:
        if self._is_due():
            self._beat("running")
        return True

    def _on_training_end(self) -> None:
        self._beat("ended")

    def _beat(self, state: str) -> None:
        about = {
            "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "process": os.getpid(),
            "state": state,
            "updates": num_updates(self.model),
            "transitions": self.num_timesteps,
        }
        with going_on_without("heartbeat", self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_text_durably(self.path, json.dumps(about) + "\n")
