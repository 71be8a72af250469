"""Processes that compute for the server, one request at a time, and are ended if they take long.

A search in a thread cannot be stopped; a process can. So nothing that a request starts outlives its
time limit, and the queue is bounded.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import torch

from resgym.players.registry import LAZY
from resgym.trust import import_modules, outside

MEMORY = 4 * 2**30
"""Most bytes of data of a process, where the system supports a limit."""

START_SECONDS = 300.0
"""Seconds to import and, the first time, to compile."""

# One warm process is loaded once and forked for each worker, where the system can fork.
_FORKS = "forkserver" in multiprocessing.get_all_start_methods()
_CONTEXT: Any = multiprocessing.get_context("forkserver" if _FORKS else "spawn")
_PRELOAD = [target.partition(":")[0] for lazy in LAZY.values() for target in lazy.values()]


class RefusedError(Exception):
    """A request without an answer: the reason in one line, and the HTTP status."""

    def __init__(self, text: str, status: int = 400) -> None:
        super().__init__(text, status)
        self.text, self.status = text, status


class _Worker:
    """A process and the pipe to it; methods block."""

    def __init__(self, prepare: Callable[[], None], modules: Sequence[str]) -> None:
        self._pipe, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(
            target=_serve, args=(theirs, prepare, modules), daemon=True
        )
        self._process.start()
        theirs.close()

    def ask(self, seconds: float, *question: Any) -> Any:
        """Return the answer; after a `RefusedError` with status 504 the process is unusable."""
        try:
            self._pipe.send(question)
            if not self._pipe.poll(seconds):
                raise RefusedError(f"stopped after {seconds:g} s, the limit of a request", 504)
            answer = self._pipe.recv()
        except (EOFError, OSError):
            raise RefusedError("stopped: the request exceeded its memory or time", 504) from None
        if isinstance(answer, RefusedError):
            raise answer
        return answer

    def end(self) -> None:
        self._process.kill()
        self._process.join()


def _serve(pipe: Connection, prepare: Callable[[], None], modules: Sequence[str]) -> None:
    """Run a process: read requests and write answers until the server is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server ends it
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with outside(), suppress(EOFError, OSError):
        import_modules(modules)
        prepare()
        while True:
            function, *arguments = pipe.recv()
            try:
                answer = function(*arguments)
            except (ValueError, TypeError, ArithmeticError, MemoryError, RecursionError) as error:
                needs = f"the request needs too much ({type(error).__name__})"
                answer = RefusedError(" ".join(str(error).split())[:500] or needs)
            except Exception as error:  # a bug: report it to the operator
                print(f"resgym serve: {type(error).__name__}: {error}"[:500], file=sys.stderr)
                answer = RefusedError("the server failed and logged the error")
            pipe.send(answer)


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
        self._alive: set[_Worker] = set()
        self._idle: asyncio.Queue[_Worker] = asyncio.Queue()
        self._starting: set[asyncio.Task[None]] = set()

    def open(self) -> None:
        """Start the processes; requests wait meanwhile."""
        if _FORKS:
            _CONTEXT.set_forkserver_preload(["resgym.web.answers", *_PRELOAD])
        # One thread for each process, which waits for it.
        threads = ThreadPoolExecutor(self._number)
        self._in_thread = partial(asyncio.get_running_loop().run_in_executor, threads)
        for _ in range(self._number):
            self._start()

    def close(self) -> None:
        """End the processes, whatever they do."""
        for task in self._starting:
            task.cancel()
        for worker in self._alive:
            worker.end()

    def _start(self) -> None:
        task = asyncio.ensure_future(self._started())
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _started(self) -> None:
        try:
            # In a thread, because the very first process has to load everything.
            worker = await self._in_thread(_Worker, *self._about)
            self._alive.add(worker)
            await self._in_thread(worker.ask, START_SECONDS, int)
        except (RefusedError, OSError) as error:
            print(f"resgym serve: a process did not start: {error}", file=sys.stderr)
        else:
            self._idle.put_nowait(worker)

    async def ask(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the result of a function of a module, called in one of the processes.

        Raises:
            RefusedError: too many requests wait, this one waited or took too long, or the function
                raised a ValueError or the like.
        """
        if self._asked >= self._most:
            text = "the server is busy: too many requests wait, try again in a moment"
            raise RefusedError(text, 503)
        self._asked += 1
        try:
            worker = await asyncio.wait_for(self._idle.get(), self.seconds)
            return await self._answer(worker, function, *arguments)
        except TimeoutError:
            text = "the server is busy or still starting, try again in a moment"
            raise RefusedError(text, 503) from None
        finally:
            self._asked -= 1

    async def _answer(self, worker: _Worker, *question: Any) -> Any:
        lost = False
        try:
            return await self._in_thread(worker.ask, self.seconds, *question)
        except RefusedError as refused:
            lost = refused.status == 504
            raise
        finally:
            if lost:
                self._alive.discard(worker)
                await self._in_thread(worker.end)
                self._start()
            else:
                self._idle.put_nowait(worker)
