"""A Ray cluster to work on: in use, at an address, or our own; and `map` on it.

docs/cluster.md lists the guarantees.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from typing import Any

import torch

from resgym.trust import imported_modules, unpacked
from sb3_ext.config.checks import check_count, one_line
from sb3_ext.runs.command import handle_again, signals_raise_exit

CONNECT_SECONDS = 5.0
"""How long the machine of a cluster may take to answer; Ray itself would try for minutes."""


@contextmanager
def connected() -> Iterator[Any]:
    """Connect to a Ray cluster for the time of a block, and yield the module `ray`.

    The environment variable `RAY_ADDRESS` names the cluster, as `host:port` or `auto`. Without it a
    new cluster starts on this machine, and stops at the end of the block. If the program is
    connected already, it stays so.

    Raises:
        ValueError: Ray is not installed, or there is no cluster at the address.
    """
    # Ray would print lines about lost processes among the results; the caller reports them.
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
    try:
        import ray
    except ImportError:
        raise ValueError(
            "actors: need Ray, which is not installed: pip install 'resgym[cluster]'"
        ) from None
    if ray.is_initialized():
        yield ray
        return
    address = os.environ.get("RAY_ADDRESS") or "local"
    _check_reachable(address)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anyone
    # In the main thread Ray would put its own handler in the place of the run's for SIGTERM, and be
    # left half started by a Ctrl-C. The processes that it starts end with the thread.
    with signals_raise_exit(), ThreadPoolExecutor(1) as thread:
        started = thread.submit(
            ray.init,
            address,
            # Only a new cluster can have a dashboard, which needs more packages.
            include_dashboard=False if address == "local" else None,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
        try:
            error = started.exception()
            if error is not None:  # of any class, if the cluster did not come up
                text = one_line(error)
                if address != "local" and os.environ.get("RAY_AUTH_MODE") != "token":
                    text += "; does it want a token? Then set RAY_AUTH_MODE=token"
                raise ValueError(f"RAY_ADDRESS: no Ray cluster at {address!r}: {text}") from error
            handle_again(signal.SIGTERM)  # Ray's own handler would end the program
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


def was_lost(ray: Any, error: Exception) -> bool:
    """Whether a task has no result because its process is gone, or what it needed of another."""
    kinds = ray.exceptions
    cause = error.cause if isinstance(error, kinds.RayTaskError) else error
    lost = kinds.NodeDiedError | kinds.ObjectLostError | kinds.OutOfMemoryError
    return isinstance(cause, kinds.WorkerCrashedError | lost)


GRACE_SECONDS = 5.0
"""Seconds that a task whose result is not needed may take to end by itself."""


def abandon(ray: Any, references: list[Any]) -> None:
    """End tasks whose results are not needed; a task may wait for tasks before it in the list.

    If a task ends just while it is cancelled, a check in Ray's core can end this program. So tasks
    get `GRACE_SECONDS` to end by themselves. The others are cancelled from the last to the first,
    because cancelling a task also ends those that wait for it.
    """
    with suppress(Exception):  # the cluster may be gone
        _, running = ray.wait(references, num_returns=len(references), timeout=GRACE_SECONDS)
        for task in reversed(running):
            ray.cancel(task, force=True)


Spread = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""Calls a function on pieces of work and gives the results in their order, as `map` does."""

AHEAD = 4
"""Pieces for each process that may be under way or done before the first of them is taken."""

LOST_IN_A_ROW = 10
"""So often one piece may lose the process that works on it before the work ends."""

CHECK_SECONDS = 1.0
"""So long a signal may have to wait."""


@contextmanager
def spreading(actors: int, check: Callable[[], None] = lambda: None) -> Iterator[Spread]:
    """`map` on this many processes while the block lasts; for 0 actors on this one.

    A piece whose process dies is done again, and one that raises ends the call with its error. So
    a function whose results depend on the piece alone gives the same ones, however many processes
    there are. Each has one thread.

    Args:
        actors: How many processes.
        check: Called about every second, or without actors before each piece and at the end;
            what it raises ends the call.

    Raises:
        ValueError, TypeError: `actors` is not a number of processes, Ray is not installed, or the
            cluster is not there or too small.
    """

    def in_turn(function: Callable[[Any], Any], pieces: Iterable[Any]) -> Iterator[Any]:
        for piece in pieces:
            check()
            yield function(piece)
        check()

    if not check_count("actors", actors, low=0):
        yield in_turn
        return
    with connected() as ray:
        check_cpus(ray, actors)
        yield partial(_spread, ray, actors, check)


@lru_cache(maxsize=1)
def _unpacked_function(modules: tuple[str, ...], packed: bytes) -> Any:
    torch.set_num_threads(1)
    return unpacked(packed, modules)


def do_piece(modules: tuple[str, ...], function: bytes, piece: bytes) -> bytes:
    """The packed result of a piece, in a process of the cluster."""
    from ray import cloudpickle

    # Packed here, arrays can be written to on the other side, as without Ray.
    result: bytes = cloudpickle.dumps(_unpacked_function(modules, function)(unpacked(piece)))
    return result


def _spread(
    ray: Any,
    actors: int,
    check: Callable[[], None],
    function: Callable[..., Any],
    pieces: Iterable[Any],
) -> Iterator[Any]:
    """`map` by processes, which unpack a function once; few pieces are made ahead."""
    work = ray.remote(do_piece).options(num_cpus=1, max_retries=LOST_IN_A_ROW - 1)
    packed, modules = ray.put(ray.cloudpickle.dumps(function)), imported_modules()
    left = map(ray.cloudpickle.dumps, pieces)
    asked: deque[Any] = deque()
    running: list[Any] = []
    taken = 0
    try:
        while True:
            while len(running) < actors and len(asked) < AHEAD * actors:
                if (piece := next(left, None)) is None:
                    break
                asked.append(work.remote(modules, packed, piece))
                running.append(asked[-1])
            if not asked:
                return
            if asked[0] in running:
                _, running = ray.wait(running, timeout=CHECK_SECONDS)
                check()
            else:
                yield unpacked(_result(ray, taken, asked.popleft()))
                taken += 1
    finally:
        abandon(ray, running)


def _result(ray: Any, number: int, reference: Any) -> bytes:
    try:
        return ray.get(reference)  # type: ignore[no-any-return]
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, Exception):
            raise error.cause from error
        raise RuntimeError(f"piece {number}: {reason_of(error)}") from error
    except ray.exceptions.RayError as error:
        raise ChildProcessError(
            f"piece {number}: {LOST_IN_A_ROW} times in a row its process was lost "
            f"(of too little memory?): {type(error).__name__}"
        ) from error
