"""Who is alive of the processes that a test started."""

import os
import time
from contextlib import suppress
from pathlib import Path

MARK = "RESGYM_TEST_CLUSTER"
"""Variable of the environment that processes hand down to those that they start."""


def marked(mark, command=b""):
    """Ids of the living processes with a mark and such a command line, but for this one.

    A child counts as its parent, as a process that writes its title may lose its variables
    (setproctitle leaves them alone if told by `SPT_NOENV`).
    """
    parents = {}
    found = set()
    named = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            if state == "Z":
                continue
            number = int(folder.name)
            parents[number] = int(parent)
            if (folder / "cmdline").read_bytes().startswith(command):
                named.add(number)
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.add(number)
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted((found & named) - {os.getpid()})


def actor_processes():
    """Ids of the processes that play chunks for this program."""
    return marked(os.environ[MARK], b"ray::play_chunk")


def wait_until(true, seconds=100.0):
    """Whether something became true in time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if true():
            return True
        time.sleep(0.05)
    return true()
