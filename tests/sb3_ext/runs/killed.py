"""Processes that are killed at given points or hold a folder, and what a folder holds then."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import zipfile
from contextlib import contextmanager

import numpy as np
import torch

from sb3_ext.runs.checkpoint import is_checkpoint, load_checkpoint

# What says when, how long, or with how many processes a run was made.
ASIDE = (
    *(".lock", "resumed.jsonl", "runs.jsonl", "monitor", "seconds", "start_time"),
    *("training_seconds", "t"),
)


def die_at(kill, owner, *names):
    """Kills this process where a plan says.

    ``step:7`` is the 7th call of these functions, ``write:5`` the 5th synchronisation or rename of
    a file, ``none`` nowhere. What torch's generator begins with must not matter, so it differs too.
    """
    kind, _, number = kill.partition(":")
    torch.manual_seed(int(number or 0))
    if kind == "step":
        at_call(int(number), die, owner, *names)
    if kind == "write":
        at_call(int(number), die, os, "fsync", "replace")


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def full(*_, **__):
    """What writing to a full disk does."""
    raise OSError(28, "No space left on device")


def at_call(number, act, owner, *names, put=setattr):
    """Acts at the k-th call of these functions of a class or module; gives a list of the calls."""
    calls = []

    def counted(function):
        def wrapped(*arguments, **keywords):
            calls.append(function)
            if len(calls) == number:
                act()
            return function(*arguments, **keywords)

        return wrapped

    for name in names:
        put(owner, name, counted(getattr(owner, name)))
    return calls


def fork(work):
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


def contents(run):
    """Every file of a run's folder as comparable data, times and paths aside; by name."""
    found = {}
    for path in sorted(run.rglob("*")):
        name = str(path.relative_to(run))
        if path.name in ASIDE or (path.is_file() and is_checkpoint(path.parent)):
            continue
        if is_checkpoint(path):
            found[name] = _comparable(load_checkpoint(path))
        elif path.is_file():
            found[name] = _file(path, run)
    return found


def _comparable(value):
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


def _file(path, run):
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return {name: (arrays[name].dtype.str, arrays[name].tolist()) for name in arrays}
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            weights = io.BytesIO(archive.read("policy.pth"))
        return _comparable(torch.load(weights, weights_only=True))
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


HOLD = """
import sys
from sb3_ext.runs.files import RunFolder
with RunFolder(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held_by_another(folder):
    """Another process is at work in the folder; it is killed at the end, if it still lives."""
    command = [sys.executable, "-c", HOLD, str(folder)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            assert process.stdout.readline() == "held\n"
            yield
        finally:
            process.kill()
