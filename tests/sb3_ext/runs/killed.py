"""Processes that are killed at given points, and what is in the folder that they leave."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import sys
import zipfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sb3_ext.runs.checkpoint import is_checkpoint, load_checkpoint

# What says when, how long, or with how many processes a run was made.
ASIDE = (
    *(".lock", "resumed.jsonl", "runs.jsonl", "monitor", "seconds", "start_time"),
    *("training_seconds", "t"),
)
ASIDE_IN_ZIP = (
    *("start_time", "_num_timesteps_at_start", "_total_timesteps"),
    *("_began", "_counted_before", "_logged_at"),
    # Attributes of the class until they are loaded.
    *("_last_episode_starts", "_updates_owed", "num_target_updates"),
)


def compare(
    work: Callable[[Path, str], int],
    folder: Path,
    plans: Sequence[str],
    run_of: Callable[[Path], Path] = lambda folder: folder,
) -> None:
    """Prints for each plan how many of its processes were killed, and what they left otherwise.

    A plan is a list of kill points, one for each process that works on a run before the one that
    finishes it. Named are the files that differ from those of a run that is not killed.

    Args:
        work: goes on with the run in a folder until it is killed at a point or finished.
        folder: for the runs.
        plans: kill points with commas between them.
        run_of: where the run lies in a folder given to `work`.
    """
    torch.set_num_threads(1)
    fork(partial(work, folder / "whole", "none"))
    expected = contents(run_of(folder / "whole"))
    for number, plan in enumerate(plans):
        parts = folder / str(number)
        kills = sum(fork(partial(work, parts, kill)) == signal.SIGKILL for kill in plan.split(","))
        fork(partial(work, parts, "none"))
        found = contents(run_of(parts))
        names = found.keys() | expected.keys()
        different = [name for name in names if found.get(name) != expected.get(name)]
        print(plan, kills, ",".join(sorted(different)) or "nothing", flush=True)


def die_at(kill: str, owner: Any, name: str) -> None:
    """Kills this process where a plan says.

    ``step:7`` is the 7th call of a function, ``write:5`` the 5th synchronisation or rename of a
    file, ``none`` nowhere. What torch's generator begins with must not matter, so it differs too.
    """
    kind, _, number = kill.partition(":")
    torch.manual_seed(int(number or 0))
    if kind == "step":
        die_at_call(owner, name, int(number))
    if kind == "write":
        die_at_write(int(number))


def die_at_call(owner: Any, name: str, kill_at: int) -> None:
    """Kills this process in the k-th call of a function."""
    original, count = getattr(owner, name), 0

    def dying(*arguments: Any, **keywords: Any) -> Any:
        nonlocal count
        count += 1
        if count == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*arguments, **keywords)

    setattr(owner, name, dying)


def die_at_write(kill_at: int, *names: str) -> None:
    """Kills this process at the k-th of these calls of `os`, ``fsync`` and ``replace`` if none."""
    count = 0

    def dying(function: Any) -> Any:
        def wrapped(*arguments: Any, **keywords: Any) -> Any:
            nonlocal count
            count += 1
            if count == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **keywords)

        return wrapped

    for name in names or ("fsync", "replace"):
        setattr(os, name, dying(getattr(os, name)))


def fork(work: Callable[[], int]) -> int:
    """Works in a process of its own; the signal that ended it, or 0."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = work()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0:
        raise SystemExit("failed")
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def contents(run: Path) -> dict[str, Any]:
    """Every file of a run's folder as comparable data, times and paths aside; by name."""
    found: dict[str, Any] = {}
    for path in sorted(run.rglob("*")):
        name = str(path.relative_to(run))
        if path.name in ASIDE or (path.is_file() and is_checkpoint(path.parent)):
            continue
        if is_checkpoint(path):
            found[name] = _comparable(load_checkpoint(path))
        elif path.is_file():
            found[name] = _file(path, run)
    return found


def _comparable(value: Any) -> Any:
    """The same with tensors as bytes, and without times."""
    if isinstance(value, torch.Tensor):
        return str(value.dtype), tuple(value.shape), value.contiguous().numpy().tobytes()
    if isinstance(value, (np.ndarray, np.generic)):
        return value.dtype.str, value.tolist()
    if isinstance(value, dict):
        return {
            key: _comparable(entry)
            for key, entry in value.items()
            if key not in ASIDE and not str(key).startswith("time/")
        }
    return [_comparable(entry) for entry in value] if isinstance(value, (list, tuple)) else value


def _file(path: Path, run: Path) -> Any:
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return {name: (arrays[name].dtype.str, arrays[name].tolist()) for name in arrays}
    if path.suffix == ".zip":
        return _archive(path)
    text = path.read_text(encoding="utf-8")
    for place in (run, run.parents[1]):
        text = text.replace(str(place), "")
    if path.name.endswith(".monitor.csv"):
        return [row[:2] for row in csv.reader(text.splitlines()[1:])]
    if path.suffix == ".json":
        return _comparable(json.loads(text))
    if path.suffix == ".jsonl":
        return [_comparable(json.loads(line)) for line in text.splitlines()]
    return text


def _archive(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            content = archive.read(name)
            if name.endswith(".pth"):
                found[name] = _comparable(torch.load(io.BytesIO(content), weights_only=True))
            elif name == "data":
                data = {k: v for k, v in json.loads(content).items() if k not in ASIDE_IN_ZIP}
                # Objects are pickles in text, which hold times; what is beside them is plain.
                found[name] = {k: v for k, v in data.items() if not isinstance(v, dict)}
            elif "system_info" not in name:
                found[name] = content
    return found
