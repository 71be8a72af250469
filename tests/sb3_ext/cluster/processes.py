"""A small cluster for tests, and who is alive of those that a test started."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

MARK = "RESGYM_TEST_CLUSTER"
"""Variable of the environment that processes hand down to those that they start."""


def marked(mark: str, command: bytes = b"") -> list[int]:
    """Ids of the living processes with a mark and such a command line, but for this one."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            variables = (folder / "environ").read_bytes().split(b"\0")
            living = (folder / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
            named = (folder / "cmdline").read_bytes().startswith(command)
            if f"{MARK}={mark}".encode() in variables and living and named:
                found.append(int(folder.name))
    return sorted(set(found) - {os.getpid()})


def actor_processes() -> list[int]:
    """Ids of the living actors of this program."""
    return marked(os.environ[MARK], b"ray::Actor")


def wait_until(true: Callable[[], bool], seconds: float = 30.0) -> bool:
    """Whether something became true in time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if true():
            return True
        time.sleep(0.05)
    return true()


@contextmanager
def marked_cluster(num_cpus: int) -> Iterator[str]:
    """A cluster on this machine; its address. Nothing of it is alive afterwards."""
    ray = pytest.importorskip("ray", reason="needs the extra: pip install 'resgym[cluster]'")
    mark = os.environ[MARK] = uuid.uuid4().hex
    ray.init(
        address="local",
        num_cpus=num_cpus,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        object_store_memory=200_000_000,
    )
    try:
        yield ray.get_runtime_context().gcs_address
    finally:
        ray.shutdown()
        del os.environ[MARK]
    assert wait_until(lambda: not marked(mark)), marked(mark)
