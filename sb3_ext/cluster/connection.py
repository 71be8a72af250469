"""A Ray cluster to work on: the one that is in use, one at an address, or one of our own."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from sb3_ext.config.checks import one_line
from sb3_ext.runs.signals import blocks_are_left, handle_again

CONNECT_SECONDS = 5.0
"""How long the machine of a cluster may take to answer; Ray itself would try for minutes."""


def ray_module() -> Any:
    """Ray; ValueError if it is not installed."""
    # Its lines about lost processes would go to stdout, into results; the caller reports them.
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
    try:
        import ray
    except ImportError:
        raise ValueError(
            "actors: need Ray, which is not installed: pip install 'resgym[cluster]'"
        ) from None
    return ray


@contextmanager
def connected() -> Iterator[Any]:
    """Ray, connected to a cluster while the block lasts; what was connected before stays so.

    The environment variable `RAY_ADDRESS` names the cluster, as `host:port` or `auto`. Without it a
    new one starts on this machine, which ends with the block.

    Raises:
        ValueError: Ray is not installed, or there is no cluster at the address.
    """
    ray = ray_module()
    if ray.is_initialized():
        yield ray
        return
    address = os.environ.get("RAY_ADDRESS") or "local"
    _check_reachable(address)
    # A dashboard can be had only of a cluster that we start, and needs more packages.
    own = {"include_dashboard": False} if address == "local" else {}
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anyone
    arguments = {"log_to_driver": False, "logging_level": "ERROR", **own}
    # In the main thread Ray would put its own handler in the place of the run's for SIGTERM, and be
    # left half started by a Ctrl-C. The processes that it starts end with the thread.
    with blocks_are_left(), ThreadPoolExecutor(1) as thread:
        started = thread.submit(ray.init, address, **arguments)
        try:
            error = started.exception()
            if error is not None:  # also one of no kind, for a cluster that did not come up
                text = " ".join(str(error).split())
                if address != "local" and os.environ.get("RAY_AUTH_MODE") != "token":
                    text += "; does it want a token? Then set RAY_AUTH_MODE=token"
                raise ValueError(f"RAY_ADDRESS: no Ray cluster at {address!r}: {text}") from error
            handle_again(signal.SIGTERM)  # Ray's core would end the program by it
            yield ray
        finally:
            wait([started])
            ray.shutdown()


def _check_reachable(address: str) -> None:
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if not colon:  # "local" and "auto"
        return
    try:
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
    except (OSError, OverflowError, ValueError) as error:
        raise ValueError(f"RAY_ADDRESS: no Ray cluster at {address!r}: {error}") from error


def check_cpus(ray: Any, actors: int, cpus_each: float = 1.0, remedy: str = "") -> None:
    """Raises ValueError if the cluster has too few processors: Ray would wait for more.

    `remedy` is what else can be done than to take fewer actors.
    """
    there = ray.cluster_resources().get("CPU", 0.0)
    if actors * cpus_each > there:
        raise ValueError(
            f"actors: {actors} need {actors * cpus_each:g} CPUs, the cluster has {there:g};"
            f" take fewer{remedy}"
        )


def reason_of(error: Exception) -> str:
    """What was raised in an actor, or happened to it, in one line."""
    cause = getattr(error, "cause", None)
    found = cause if isinstance(cause, BaseException) else error
    return f"{type(found).__name__}: {one_line(found)}"
