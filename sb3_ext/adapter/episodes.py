"""Returns and lengths of episodes, kept on the device, and their way into `monitor.csv`."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from stable_baselines3.common.monitor import ResultsWriter
from torch import Tensor

STEPS_BETWEEN_WRITES = 64


class EpisodeCounter:
    """Counts what an environment does not count itself.

    Many environments put `episode` = {r, l} with the mask `_episode` into the info of a step in
    which a row ended. Until that has been seen, this sums rewards and steps and adds the entries.
    """

    def __init__(self) -> None:
        self._counted_by_env = False
        self._sums: dict[str, Tensor] | None = None

    def restart(self) -> None:
        """All rows begin a new episode."""
        self._sums = None

    def update(self, rewards: Tensor, ended: Tensor, info: dict[str, Any]) -> dict[str, Any]:
        """The info, with `episode` and `_episode`; all arguments are about one step, `[N]`."""
        self._counted_by_env = self._counted_by_env or "episode" in info
        if self._counted_by_env:
            return info
        before = self._sums or {"r": torch.zeros_like(rewards), "l": torch.zeros_like(ended).long()}
        sums = {"r": before["r"] + rewards, "l": before["l"] + 1}
        self._sums = {name: value.masked_fill(ended, 0) for name, value in sums.items()}
        if "final_obs" not in info:  # no row can have ended
            return info
        return {**info, "episode": sums, "_episode": ended}

    def state_dict(self) -> dict[str, Any]:
        """What has been counted of the running episodes."""
        return {"counted_by_env": self._counted_by_env, "sums": self._sums}

    def load_state_dict(self, state: Mapping[str, Any], device: torch.device) -> None:
        """Go on where `state_dict` was taken."""
        self._counted_by_env, sums = state["counted_by_env"], state["sums"]
        self._sums = sums and {name: value.to(device) for name, value in sums.items()}


class MonitorFile:
    """Appends finished episodes to a `monitor.csv`, the file of SB3's `Monitor`.

    Statistics are gathered as tensors and written after every 64 steps that had some, on `flush`
    and on `close`, so that an accelerator is waited for rarely. `info_keywords` are further per-row
    entries of the info, one column each; the rest is as for `Monitor`.
    """

    def __init__(
        self,
        filename: str,
        env_id: str,
        info_keywords: tuple[str, ...] = (),
        override_existing: bool = True,
    ) -> None:
        self._start, self._keywords = time.time(), info_keywords
        self._pending: list[tuple[float, Tensor, dict[str, Tensor]]] = []
        header: dict[str, Any] = {"t_start": self._start, "env_id": env_id}
        self._writer = ResultsWriter(filename, header, info_keywords, override_existing)
        self._file = self._writer.file_handler

    def add(self, info: dict[str, Any]) -> None:
        """Note the episodes that ended in a step; ValueError if the info lacks a keyword."""
        if "episode" not in info:
            return
        if lacking := [name for name in self._keywords if name not in info]:
            raise ValueError(f"info_keywords: {lacking[0]!r} is not in the info, it has {[*info]}")
        columns = {**info["episode"], **{name: info[name] for name in self._keywords}}
        self._pending.append((time.time() - self._start, info["_episode"], columns))
        if len(self._pending) >= STEPS_BETWEEN_WRITES:
            self.flush()

    def flush(self) -> None:
        """Write what has been gathered."""
        if self._file.closed:
            return
        for seconds, ended, columns in self._pending:
            chosen = [values[ended].tolist() for values in columns.values()]
            for row in zip(*chosen, strict=True):
                entry = dict(zip(columns, row, strict=True))
                entry |= {"r": round(entry["r"], 6), "t": round(seconds, 6)}
                self._writer.logger.writerow(entry)
        self._pending.clear()
        self._file.flush()

    def state_dict(self) -> dict[str, Any]:
        """Writes what has been gathered; how long the file is then, and a digest of it."""
        self.flush()
        content = Path(self._file.name).read_bytes()
        return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes back the episodes written after `state_dict`, which will be played again.

        Nothing happens to a file that does not begin with what was there then.
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
