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
        self._returns: Tensor | None = None
        self._lengths: Tensor | None = None
        self._counted_by_env = False

    def restart(self) -> None:
        """All rows begin a new episode."""
        self._returns = self._lengths = None

    def update(self, rewards: Tensor, ended: Tensor, info: dict[str, Any]) -> dict[str, Any]:
        """The info, with `episode` and `_episode`; all arguments are about one step, `[N]`."""
        if self._counted_by_env:
            return info
        if "episode" in info:
            self._counted_by_env = True
            return info
        if self._returns is None or self._lengths is None:
            self._returns = torch.zeros_like(rewards, dtype=torch.float32)
            self._lengths = torch.zeros_like(rewards, dtype=torch.int64)
        returns, lengths = self._returns + rewards, self._lengths + 1
        self._returns = torch.where(ended, 0.0, returns)
        self._lengths = torch.where(ended, 0, lengths)
        if "final_obs" not in info:  # no row can have ended
            return info
        return {**info, "episode": {"r": returns, "l": lengths}, "_episode": ended}

    def state_dict(self) -> dict[str, Any]:
        """What has been counted of the running episodes."""
        sums = {"lengths": self._lengths, "returns": self._returns}
        return {"counted_by_env": self._counted_by_env, **sums}

    def load_state_dict(self, state: Mapping[str, Any], device: torch.device) -> None:
        """Go on where `state_dict` was taken."""
        self._counted_by_env = state["counted_by_env"]
        lengths, returns = state["lengths"], state["returns"]
        self._lengths = None if lengths is None else lengths.to(device, copy=True)
        self._returns = None if returns is None else returns.to(device, copy=True)


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
        self.start_time = time.time()
        self.info_keywords = info_keywords
        self._pending: list[tuple[float, Tensor, dict[str, Tensor]]] = []
        self._writer = ResultsWriter(
            filename,
            header={"t_start": self.start_time, "env_id": env_id},
            extra_keys=info_keywords,
            override_existing=override_existing,
        )

    def add(self, info: dict[str, Any]) -> None:
        """Note the episodes that ended in a step; ValueError if the info lacks a keyword."""
        if "episode" not in info:
            return
        columns = {"r": info["episode"]["r"], "l": info["episode"]["l"]}
        for name in self.info_keywords:
            if name not in info:
                raise ValueError(f"info_keywords: {name!r} is not in the info, it has {[*info]}")
            columns[name] = info[name]
        self._pending.append((time.time() - self.start_time, info["_episode"], columns))
        if len(self._pending) >= STEPS_BETWEEN_WRITES:
            self.flush()

    def flush(self) -> None:
        """Write what has been gathered."""
        if self._writer.file_handler.closed:
            return
        for seconds, ended, columns in self._pending:
            chosen = [values[ended].tolist() for values in columns.values()]
            for row in zip(*chosen, strict=True):
                entry = dict(zip(columns, row, strict=True))
                entry |= {"r": round(entry["r"], 6), "t": round(seconds, 6)}
                self._writer.logger.writerow(entry)
        self._pending.clear()
        self._writer.file_handler.flush()

    def state_dict(self) -> dict[str, Any]:
        """Writes what has been gathered; how long the file is then, and a digest of it."""
        self.flush()
        content = self._content()
        return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes back the episodes written after `state_dict`, which will be played again.

        Nothing happens to a file that does not begin with what was there then.
        """
        self._pending.clear()
        begin = self._content()[: state["bytes"]]
        if self._writer.file_handler.closed or hashlib.sha256(begin).hexdigest() != state["sha256"]:
            return
        self._writer.file_handler.seek(state["bytes"])
        self._writer.file_handler.truncate()

    def _content(self) -> bytes:
        return Path(self._writer.file_handler.name).read_bytes()

    def close(self) -> None:
        """Write what is left and close the file; again is harmless."""
        self.flush()
        self._writer.close()
