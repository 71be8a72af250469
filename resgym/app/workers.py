"""Processes that compute for the server, one request at a time, and are ended if they take long.

A search in a thread cannot be stopped; a process can. So nothing that a request starts outlives its
time limit, and the queue is bounded.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from contextlib import suppress
from typing import Any

import torch

from resgym.players.registry import PLAYERS
from resgym.polynomials.parse import ParseError
from resgym.texts import one_line
from resgym.trust import command_words, import_modules

MEMORY = 4 * 2**30
"""Most bytes of data of a process, where the system supports a limit."""

START_SECONDS = 300.0
"""Seconds to import and, the first time, to compile."""

# One warm process is loaded once and forked for each worker, where the system can fork.
_FORKS = "forkserver" in multiprocessing.get_all_start_methods()
_CONTEXT = multiprocessing.get_context("forkserver" if _FORKS else "spawn")
_PRELOAD = [str(each).partition(":")[0] for named in PLAYERS.values() for each in named.values()]


class RefusedError(Exception):
    """A request without an answer: the reason in one line, and the HTTP status."""

    def __init__(self, text: str, status: int = 400) -> None:
        super().__init__(text, status)
        self.text, self.status = text, status


def _begin(prepare: Callable[[], None], modules: Sequence[str]) -> None:
    """Set up a process: its limits, what it may not do, what it has loaded."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server ends it
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    command_words().__enter__()  # for its whole life
    import_modules(modules)
    prepare()


def outcome(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function; every error becomes a `RefusedError`."""
    try:
        return function(*arguments)
    except ParseError as error:  # its lines show the place
        raise RefusedError(str(error)) from None
    except (ValueError, TypeError, ArithmeticError, MemoryError, RecursionError) as error:
        needs = f"the request needs too much ({type(error).__name__})"
        raise RefusedError(one_line(error) if str(error) else needs) from None
    except Exception as error:  # a bug: report it to the operator
        print(f"resgym serve: {type(error).__name__}: {one_line(error)}", file=sys.stderr)
        raise RefusedError("the server failed and logged the error") from None


class Workers:
    """A fixed number of processes behind one bounded queue.

    Args:
        number: number of processes.
        seconds: that a request may wait, and after that may take.
        most_waiting: requests that may wait; more are refused at once.
        prepare: called in every process before its first request.
        modules: names of modules that every process imports, see `import_modules`.
    """

    def __init__(
        self,
        number: int,
        seconds: float,
        most_waiting: int,
        prepare: Callable[[], None],
        modules: Sequence[str] = (),
    ) -> None:
        self.seconds, self._number, self._most = seconds, number, number + most_waiting
        self._about = prepare, tuple(modules)
        self._asked = 0
        # Pools of one process each, as a pool cannot end one of several; with its number.
        self._idle: asyncio.Queue[tuple[ProcessPoolExecutor, int]] = asyncio.Queue()
        self._starting: set[asyncio.Task[None]] = set()

    def open(self) -> None:
        """Start the processes; requests wait meanwhile."""
        if _FORKS:
            _CONTEXT.set_forkserver_preload(["resgym.app.answers", *_PRELOAD])
        for _ in range(self._number):
            self._start()

    def close(self) -> None:
        """End the processes, whatever they do."""
        for task in self._starting:
            task.cancel()
        for process in multiprocessing.active_children():
            process.kill()

    def _start(self) -> None:
        task = asyncio.ensure_future(self._started())
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _started(self) -> None:
        pool = ProcessPoolExecutor(1, _CONTEXT, _begin, self._about)
        try:
            process = await self._run(pool, START_SECONDS, os.getpid)
        except (BrokenExecutor, TimeoutError, OSError) as error:
            print(f"resgym serve: a process did not start: {error!r}", file=sys.stderr)
        else:
            self._idle.put_nowait((pool, process))

    async def _run(self, pool: ProcessPoolExecutor, seconds: float, *call: Any) -> Any:
        # In a thread, since the first process of all has to load everything.
        future = await asyncio.to_thread(lambda: pool.submit(*call))
        return await asyncio.wait_for(asyncio.wrap_future(future), seconds)

    async def ask(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of a module with these arguments in one of the processes.

        Raises:
            RefusedError: too many requests wait, this one waited or took too long, or the function
                raised an error.
        """
        if self._asked >= self._most:
            raise RefusedError(
                "the server is busy: too many requests wait, try again in a moment", 503
            )
        self._asked += 1
        try:
            pool, process = await asyncio.wait_for(self._idle.get(), self.seconds)
        except TimeoutError:
            raise RefusedError(
                "the server is busy or still starting, try again in a moment", 503
            ) from None
        else:
            return await self._ask(pool, process, function, *arguments)
        finally:
            self._asked -= 1

    async def _ask(self, pool: ProcessPoolExecutor, process: int, *call: Any) -> Any:
        alive = True
        try:
            return await self._run(pool, self.seconds, outcome, *call)
        except (BrokenExecutor, TimeoutError) as error:
            alive = False
            with suppress(OSError):
                os.kill(process, signal.SIGTERM if os.name == "nt" else signal.SIGKILL)
            pool.shutdown(wait=False)
            self._start()
            text = "stopped: the request exceeded its memory or time"
            if isinstance(error, TimeoutError):
                text = f"stopped after {self.seconds:g} s, the limit of a request"
            raise RefusedError(text, 504) from None
        finally:
            if alive:
                self._idle.put_nowait((pool, process))
