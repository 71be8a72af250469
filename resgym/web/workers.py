"""Processes that compute for the server, each one question at a time, and are ended when it lasts.

A search in a thread cannot be stopped; a process can. So nothing that a request starts goes on
after its time, and what waits is bounded.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any

import torch

from resgym.players.registry import LAZY
from resgym.trust import import_modules, outside

MEMORY = 4 * 2**30
"""Bytes of data that a process may hold, where the system can say so."""

START_SECONDS = 300.0
"""To import and, the first time of all, to compile."""

STARTING = "the server is busy or still starting, try again in a moment"

# One warm process is loaded once and forked for each worker, where the system can do that.
_FORKS = "forkserver" in multiprocessing.get_all_start_methods()
_CONTEXT: Any = multiprocessing.get_context("forkserver" if _FORKS else "spawn")
_PRELOAD = [target.partition(":")[0] for lazy in LAZY.values() for target in lazy.values()]


class StoppedError(Exception):
    """A question took too long, or ended its process; what says so is in words."""


class BusyError(Exception):
    """Too many questions wait already."""


class RefusedError(Exception):
    """A question that cannot be answered, for the reason given in one line."""


class _Worker:
    """A process and the pipe to it; its methods block."""

    def __init__(self, prepare: Callable[[], None], modules: Sequence[str]) -> None:
        self._about = prepare, tuple(modules)
        self._process: Any = None

    def start(self) -> None:
        self._pipe, theirs = _CONTEXT.Pipe()
        arguments = (theirs, *self._about)
        process = _CONTEXT.Process(target=_serve, args=arguments, daemon=True)
        process.start()
        self._process = process
        theirs.close()

    def wait(self) -> None:
        self._answer(START_SECONDS)

    def ask(self, function: Callable[..., Any], arguments: tuple[Any, ...], seconds: float) -> Any:
        return self._answer(seconds, (function, arguments))

    def _answer(self, seconds: float, question: Any = None) -> Any:
        try:
            if question is not None:
                self._pipe.send(question)
            if not self._pipe.poll(seconds):
                raise StoppedError(f"stopped after {seconds:g} s, the limit of a request")
            known, answer = self._pipe.recv()
        except (EOFError, OSError):
            raise StoppedError("stopped: the request needed more than it may have") from None
        if not known:
            raise RefusedError(answer)
        return answer

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()


def _serve(pipe: Connection, prepare: Callable[[], None], modules: Sequence[str]) -> None:
    """The life of a process: questions in, answers out, until the server is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server ends it
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with outside(), suppress(EOFError, OSError):
        import_modules(modules)
        prepare()
        pipe.send((True, None))
        while True:
            function, arguments = pipe.recv()
            try:
                answer = True, function(*arguments)
            except (ValueError, TypeError, ArithmeticError, MemoryError, RecursionError) as error:
                answer = False, _told(error)
            except Exception as error:  # a mistake of ours, told to who runs the server
                print(f"resgym serve: {type(error).__name__}: {_told(error)}", file=sys.stderr)
                answer = False, "an error of the server, which has noted it"
            pipe.send(answer)


def _told(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text[:500] if text else f"the request needs too much ({type(error).__name__})"


class Workers:
    """A fixed number of processes behind one queue of bounded length.

    Args:
        number: of processes.
        seconds: that a question may wait, and after that may last.
        most_waiting: questions that may wait; more are refused at once.
        prepare: called in every process before its first question.
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
        self.seconds, self._most = seconds, number + most_waiting
        self._workers = [_Worker(prepare, modules) for _ in range(number)]
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        # What waits, waits for one of these: who is free goes on without the event loop.
        self._threads = ThreadPoolExecutor(number, "worker")
        self._asked = 0
        self._closed, self._starting = False, Lock()

    def open(self) -> None:
        """Starts the processes; questions wait meanwhile."""
        if _FORKS:
            _CONTEXT.set_forkserver_preload(["resgym.web.answers", *_PRELOAD])
        for worker in self._workers:
            self._restart(worker)

    def close(self) -> None:
        """Ends the processes, whatever they do."""
        with self._starting:
            self._closed = True
            for worker in self._workers:
                worker.end()
                self._idle.put(worker)  # so that nobody waits for one
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _restart(self, worker: _Worker) -> None:
        Thread(target=self._start, args=(worker,), daemon=True).start()

    def _start(self, worker: _Worker) -> None:
        try:
            with self._starting:
                if self._closed:
                    return
                worker.end()
                worker.start()
            worker.wait()
        except (StoppedError, RefusedError, OSError) as error:
            if not self._closed:
                print(f"resgym serve: a process did not start: {error}", file=sys.stderr)
        else:
            self._idle.put(worker)

    async def ask(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a function of a module returns for these arguments, in one of the processes.

        Raises:
            BusyError: too many questions wait, or this one waited too long.
            RefusedError: the function raised a ValueError or the like.
            StoppedError: it took too long.
        """
        if self._asked >= self._most:
            raise BusyError("the server is busy: too many requests wait, try again in a moment")
        loop = asyncio.get_running_loop()
        until = loop.time() + self.seconds
        future = self._threads.submit(self._ask, until, function, arguments)
        waited = loop.call_at(until, future.cancel)  # has no effect once it is asked
        self._asked += 1
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if loop.time() < until:
                raise
            raise BusyError(STARTING) from None
        finally:
            waited.cancel()
            self._asked -= 1

    def _ask(self, until: float, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        try:
            worker = self._idle.get(timeout=max(0.0, until - time.monotonic()))
        except Empty:
            raise BusyError(STARTING) from None
        if self._closed:
            raise StoppedError("stopped: the server ends")
        try:
            answer = worker.ask(function, arguments, self.seconds)
        except RefusedError:
            self._idle.put(worker)
            raise
        except BaseException:
            self._restart(worker)
            raise
        self._idle.put(worker)
        return answer
