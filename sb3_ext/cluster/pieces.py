"""Independent pieces of work, done by processes of a Ray cluster: `map`, elsewhere.

docs/cluster.md says what is promised.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple

import torch

from resgym.trust import import_modules, imported_modules
from sb3_ext.cluster.connection import check_cpus, connected, reason_of, wait_for_start
from sb3_ext.cluster.stream import LONGEST_WAIT, START_SECONDS
from sb3_ext.config.checks import check_count, check_number

Spread = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""Calls a function on pieces of work and gives the results in their order, as `map` does."""

AHEAD = 4
"""Pieces for each process that may be under way or done before the first of them is taken."""

LOST_IN_A_ROW = 10
"""So often one piece may lose the process that works on it before the work ends."""

LATE_IN_A_ROW = 3
"""Likewise if it was lost because it did not answer in time, or the time before."""

CHECK_SECONDS = 1.0
"""So long a signal may have to wait."""


def _nothing() -> None:
    """What is checked where nobody asks for anything."""


@contextmanager
def spreading(
    actors: int, check: Callable[[], None] = _nothing, timeout_s: float = LONGEST_WAIT
) -> Iterator[Spread]:
    """`map` on so many processes while the block lasts; for 0 actors it is `map` itself.

    A piece whose process dies is done again, and one that raises ends the call with its error. So
    a function whose results depend on the piece alone gives the same ones, however many processes
    there are. Each has one thread.

    Args:
        actors: How many processes.
        check: Called about every second, or without actors before each piece and at the end;
            what it raises ends the call.
        timeout_s: Seconds after which a process that has not done its piece counts as hanging; the
            piece is done again by a new one.

    Raises:
        ValueError, TypeError: `actors` is no number of processes, `timeout_s` is out of its range,
            Ray is not installed, or the cluster is not there or too small.
    """
    timeout_s = check_number("timeout_s", timeout_s, 0.0, LONGEST_WAIT, above=True)
    if not check_count("actors", actors, low=0):
        yield map if check is _nothing else partial(_in_turn, check)
        return
    with connected(None) as ray:
        processes = Processes(ray, actors, check=check, timeout=timeout_s)
        try:
            yield processes.map
        finally:
            processes.stop()


def _in_turn(
    check: Callable[[], None], function: Callable[[Any], Any], pieces: Iterable[Any]
) -> Iterator[Any]:
    for piece in pieces:
        check()
        yield function(piece)
    check()


class PieceActor:
    """Works on pieces in an actor's process."""

    _number = -1
    _function: Callable[..., Any]

    def __init__(self, modules: Iterable[str] = ()) -> None:
        torch.set_num_threads(1)
        self._modules = tuple(modules)

    def start(self) -> None:
        """Answers when the process is there; an error of an import here is one of the piece."""
        import_modules(self._modules)

    def work(self, number: int, function: bytes, piece: bytes, *shared: Any) -> bytes:
        """The result of a piece; a function is unpacked once, it is known by its `number`."""
        from ray import cloudpickle

        if number != self._number:
            self.start()
            self._function, self._number = cloudpickle.loads(function), number
        # Packed here, arrays can be written to on the other side, as without Ray.
        result: bytes = cloudpickle.dumps(self._function(cloudpickle.loads(piece), *shared))
        return result


class _Asked(NamedTuple):
    """A piece, its number, who works on it until when, and how many were lost over it before."""

    number: int
    piece: bytes
    place: int
    actor: Any
    until: float
    lost: int = 0


class Processes:
    """So many processes on a Ray cluster, from the first moment on.

    Args:
        ray: The module, connected.
        actors: How many.
        check: As in `spreading`.
        timeout: As in `spreading`.

    Raises:
        ValueError: The cluster is too small.
    """

    def __init__(
        self,
        ray: Any,
        actors: int,
        check: Callable[[], None] = _nothing,
        timeout: float = LONGEST_WAIT,
    ) -> None:
        check_cpus(ray, actors)
        self._ray, self._check, self._timeout = ray, check, timeout
        self._actor_class = ray.remote(PieceActor).options(
            num_cpus=1, max_restarts=0, max_task_retries=0
        )
        self._actors: list[Any] = [self._new_actor() for _ in range(actors)]
        self._starting = [actor.start.remote() for actor in self._actors]
        self._function: Any = None
        self._packed: Any = None
        self._number = 0

    def _new_actor(self) -> Any:
        return self._actor_class.remote(imported_modules())

    def map(
        self, function: Callable[..., Any], pieces: Iterable[Any], *shared: Any
    ) -> Iterator[Any]:
        """Results in the order of the pieces; few are made before they are taken.

        Function, pieces and results travel by pickle, a function once for several calls in a row.
        `shared` are further arguments, the same for all pieces; references of Ray stand for what
        is in its object store.

        Raises:
            ValueError: The processes did not start.
            ChildProcessError: A piece lost its process again and again.
        """
        if self._starting:
            wait_for_start(self._ray, self._starting, START_SECONDS)
            self._starting = []
        if function is not self._function:
            packed = self._ray.put(self._ray.cloudpickle.dumps(function))
            self._function, self._packed, self._number = function, packed, self._number + 1
        left = enumerate(map(self._ray.cloudpickle.dumps, pieces))
        idle = list(range(len(self._actors)))
        under_way: dict[Any, _Asked] = {}
        done: dict[int, bytes] = {}
        turn = 0
        try:
            while True:
                while idle and len(done) + len(under_way) < AHEAD * len(self._actors):
                    if (following := next(left, None)) is None:
                        break
                    self._ask(under_way, *following, idle.pop(), 0, shared)
                if turn in done:
                    yield self._ray.cloudpickle.loads(done.pop(turn))
                    turn += 1
                elif under_way:
                    found, _ = self._ray.wait(list(under_way), timeout=CHECK_SECONDS)
                    self._check()
                    if not found:
                        now = time.monotonic()
                        found = [each for each, asked in under_way.items() if now > asked.until]
                    if not found:
                        continue
                    asked = under_way.pop(found[0])
                    result = self._result(found[0], asked)
                    if result is None:
                        again = (asked.number, asked.piece, asked.place, asked.lost + 1)
                        self._ask(under_way, *again, shared)
                    else:
                        done[asked.number] = result
                        idle.append(asked.place)
                else:
                    return
        finally:
            for asked in under_way.values():  # nobody wants what they work on any more
                self._end(asked.place, asked.actor)

    def _ask(
        self,
        under_way: dict[Any, _Asked],
        number: int,
        piece: bytes,
        place: int,
        lost: int,
        shared: tuple[Any, ...],
    ) -> None:
        until = time.monotonic() + self._timeout
        if self._actors[place] is None:
            self._actors[place] = self._new_actor()
            until += START_SECONDS
        actor = self._actors[place]
        reference = actor.work.remote(self._number, self._packed, piece, *shared)
        under_way[reference] = _Asked(number, piece, place, actor, until, lost)

    def _result(self, reference: Any, asked: _Asked) -> bytes | None:
        """The packed result; None if the process was lost, and another one has to be asked."""
        try:
            return self._ray.get(reference, timeout=0)  # type: ignore[no-any-return]
        except self._ray.exceptions.RayTaskError as error:
            cause = getattr(error, "cause", None)
            if isinstance(cause, Exception):
                raise cause from error
            raise RuntimeError(f"piece {asked.number}: {reason_of(error)}") from error
        except self._ray.exceptions.RayError as error:
            lost = asked.lost + 1
            why = f"was lost (of too little memory?): {type(error).__name__}"
            late = isinstance(error, self._ray.exceptions.GetTimeoutError)
            if late:
                why = f"had not done it after {self._timeout:g} s, which is timeout_s"
            if lost >= (LATE_IN_A_ROW if late else LOST_IN_A_ROW):
                raise ChildProcessError(
                    f"piece {asked.number}: {lost} times in a row its process {why}"
                ) from error
            self._end(asked.place, asked.actor)
            return None

    def _end(self, place: int, actor: Any) -> None:
        """End a process, unless there is another one in its place already."""
        if actor is not None and self._actors[place] is actor:
            self._actors[place] = None
            with suppress(Exception):  # the cluster may be gone
                self._ray.kill(actor)

    def stop(self) -> None:
        """End all processes; again is harmless."""
        for place, actor in enumerate(self._actors):
            self._end(place, actor)
