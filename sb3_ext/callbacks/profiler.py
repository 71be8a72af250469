"""PyTorch's profiler around a few steps of training."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from stable_baselines3.common.callbacks import BaseCallback
from torch.profiler import ProfilerActivity, profile, schedule

from sb3_ext.config.checks import check_count

__all__ = ["Profiler"]


class Profiler(BaseCallback):
    """Records some parallel steps, with the updates between them, and writes what they spent.

    Into ``<run_dir>/profile``: ``trace-<n>.json`` for Chrome's ``about:tracing`` or Perfetto, and
    ``table-<n>.txt``, the operations that took longest. It slows the recorded steps down, and does
    nothing after the last repetition.
    """

    def __init__(
        self,
        run_dir: str | os.PathLike[str],
        *,
        skip_first: int = 10,
        wait: int = 10,
        warmup: int = 10,
        active: int = 10,
        repeat: int = 1,
        rows: int = 10,
    ) -> None:
        """Sets what is recorded, in parallel steps.

        Args:
            run_dir: the folder of the run.
            skip_first: steps before everything.
            wait: steps before each repetition.
            warmup: steps that are recorded and thrown away, since the first ones are slow.
            active: steps that are recorded, at least 1.
            repeat: repetitions, at least 1.
            rows: operations in the table.

        Raises:
            ValueError, TypeError: a number out of its range.
        """
        super().__init__()
        self.folder = Path(run_dir) / "profile"
        self._steps = {
            "skip_first": check_count("skip_first", skip_first, low=0),
            "wait": check_count("wait", wait, low=0),
            "warmup": check_count("warmup", warmup, low=0),
            "active": check_count("active", active),
            "repeat": check_count("repeat", repeat),
        }
        self.rows = check_count("rows", rows)
        self.traces: list[Path] = []
        self._profile: profile | None = None
        self._left = 0

    def _on_training_start(self) -> None:
        activities = [ProfilerActivity.CPU]
        if self.model.device.type == "cuda":
            activities.append(ProfilerActivity.CUDA)
        steps = self._steps
        once = steps["wait"] + steps["warmup"] + steps["active"]
        self._left = steps["skip_first"] + once * steps["repeat"]
        self._profile = profile(
            activities=activities, schedule=schedule(**steps), on_trace_ready=self._write
        )
        self._profile.start()

    def _on_step(self) -> bool:
        if self._profile is not None:
            self._profile.step()
            self._left -= 1
            if self._left <= 0:
                self._stop()
        return True

    def _on_training_end(self) -> None:
        self._stop()

    def _stop(self) -> None:
        if self._profile is not None:
            self._profile.stop()
            self._profile = None

    def _write(self, recorded: Any) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        number = len(self.traces)
        trace = self.folder / f"trace-{number}.json"
        recorded.export_chrome_trace(str(trace))
        on_cuda = torch.device(self.model.device).type == "cuda"
        order = "self_cuda_time_total" if on_cuda else "self_cpu_time_total"
        table = recorded.key_averages().table(sort_by=order, row_limit=self.rows)
        (self.folder / f"table-{number}.txt").write_text(table + "\n", encoding="utf-8")
        self.traces.append(trace)
