"""Who works: this process, or tasks on a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from sb3_ext.cluster.connection import check_cpus, connected, reason_of
from sb3_ext.cluster.crew import LOST_IN_A_ROW

T = TypeVar("T")
P = TypeVar("P")

POLL_SECONDS = 1.0
"""So long a signal may have to wait."""


class Stopped(Exception):
    """The run was asked to end; what is finished is on the disk."""


class Workers:
    """Does pieces of work, at most so many at a time.

    A process that is lost is replaced by Ray, which has it do the same again.

    Args:
        ray: the module, connected; None: all is done in this process.
        actors: how many work at a time.
        stopped: whether to end; then `run` raises `Stopped`.
    """

    def __init__(self, ray: Any, actors: int, stopped: Callable[[], bool]) -> None:
        self._ray, self._actors, self._stopped = ray, actors, stopped

    def run(self, function: Callable[[P], T], plans: Sequence[P]) -> list[T]:
        """What a function of this package's returns for each of the plans, in their order.

        Raises:
            Stopped: see the class.
            ChildProcessError: the process that did one was lost again and again.
        """
        if self._ray is not None:
            return self._on_ray(function, plans)
        results = []
        for plan in plans:
            self._check()
            results.append(function(plan))
        self._check()
        return results

    def _check(self) -> None:
        if self._stopped():
            raise Stopped

    def _on_ray(self, function: Callable[[P], T], plans: Sequence[P]) -> list[T]:
        ray, results = self._ray, dict[int, T]()
        task = ray.remote(function).options(num_cpus=1, max_retries=LOST_IN_A_ROW)
        waiting, running = list(enumerate(plans)), dict[Any, int]()
        try:
            while waiting or running:
                while waiting and len(running) < self._actors:
                    number, plan = waiting.pop(0)
                    running[task.remote(plan)] = number
                done, _ = ray.wait(list(running), timeout=POLL_SECONDS)
                self._check()
                for reference in done:
                    results[running[reference]] = ray.get(reference)
                    del running[reference]
        except ray.exceptions.RayTaskError as error:
            cause = error.cause
            raise (
                cause if isinstance(cause, Exception) else RuntimeError(reason_of(error))
            ) from None
        except ray.exceptions.RayError as error:
            raise ChildProcessError(f"a process was lost: {reason_of(error)}") from error
        finally:
            for reference in running:
                ray.cancel(reference, force=True)
        return [results[number] for number in range(len(plans))]


@contextmanager
def workers(actors: int, stopped: Callable[[], bool]) -> Iterator[Workers]:
    """Workers while the block lasts; 0 actors: this process, else so many of Ray's.

    Raises:
        ValueError: Ray is not installed, there is no cluster, or it has fewer processors.
    """
    if actors == 0:
        yield Workers(None, 1, stopped)
        return
    with connected(None) as ray:
        check_cpus(ray, actors, 1)
        yield Workers(ray, actors, stopped)
