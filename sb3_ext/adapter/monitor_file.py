"""What an environment says about rows, and the episodes of them in SB3's `monitor.csv`."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.monitor import ResultsWriter
from torch import Tensor

from sb3_ext.adapter.seam import to_arrays

STEPS_BETWEEN_WRITES = 64


def infos_of(info: Mapping[str, Any], rows: np.ndarray) -> list[dict[str, Any]]:
    """What an info with masks `_key` says about some rows, as SB3 has it: a dictionary for each."""
    found: list[dict[str, Any]] = [{} for _ in rows]
    for key, value in info.items():
        if key.startswith("_") or key in ("final_obs", "final_info"):
            continue
        if isinstance(value, dict):
            values: Any = infos_of(value, rows)
        elif isinstance(value, (Tensor, np.ndarray)) and value.ndim:
            part = to_arrays(value)[rows]
            values = part.tolist() if part.ndim == 1 else part.copy()
        else:
            continue
        known = to_arrays(info[f"_{key}"])[rows] if f"_{key}" in info else [True] * len(rows)
        for own, has, each in zip(found, known, values, strict=True):
            if has:
                own[key] = each
    return found


class MonitorFile:
    """Append finished episodes to a `monitor.csv`, the file of SB3's `Monitor`.

    Statistics are written at once, or without `now` after every 64 steps with finished episodes, on
    `flush` and on `close`, so that an accelerator rarely waits. The arguments are those of
    `Monitor`.
    """

    def __init__(
        self,
        filename: str,
        env_id: str,
        override_existing: bool = True,
        info_keywords: Sequence[str] = (),
    ) -> None:
        self._start = time.time()
        self._pending: list[tuple[float, dict[str, Any]]] = []
        header: dict[str, Any] = {"t_start": self._start, "env_id": env_id}
        self._keywords = tuple(info_keywords)
        self._writer = ResultsWriter(filename, header, self._keywords, override_existing)
        self._file = self._writer.file_handler

    def add(self, info: dict[str, Any], *, now: bool) -> None:
        """Note the episodes that ended in a step."""
        if "episode" in info:
            names = ("episode", "_episode", *self._keywords)
            told = {name: info[name] for name in names if name in info}
            self._pending.append((time.time() - self._start, told))
        if now or len(self._pending) >= STEPS_BETWEEN_WRITES:
            self.flush()

    def flush(self) -> None:
        """Write what has been gathered."""
        if self._file.closed:
            return
        for seconds, told in self._pending:
            for each in infos_of(told, np.flatnonzero(told["_episode"].cpu().numpy())):
                r, length = each["episode"]["r"], each["episode"]["l"]
                entry = {"r": round(r, 6), "l": length, "t": round(seconds, 6)}
                self._writer.logger.writerow(entry | {key: each[key] for key in self._keywords})
        self._pending.clear()
        self._file.flush()

    def state_dict(self) -> dict[str, Any]:
        """Write what has been collected; return the file's length and digest."""
        self.flush()
        content = Path(self._file.name).read_bytes()
        return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Remove the episodes written after `state_dict`, which will be played again.

        A file that has changed before that point is left as it is.
        """
        self._pending.clear()
        begin = Path(self._file.name).read_bytes()[: state["bytes"]]
        if hashlib.sha256(begin).hexdigest() == state["sha256"] and not self._file.closed:
            self._file.seek(state["bytes"])
            self._file.truncate()

    def close(self) -> None:
        """Write what is left and close the file; again is harmless."""
        self.flush()
        self._writer.close()
