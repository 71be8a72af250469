"""Processes that answer: what is too long is stopped, and nothing piles up."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import operator
import os
import signal
import time

import pytest

from resgym.web.workers import MEMORY, BusyError, RefusedError, StoppedError, Workers


async def first(workers):
    """The process's number, once it has started."""
    while True:
        with contextlib.suppress(BusyError):
            return await workers.ask(os.getpid)


def gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


def test_what_lasts_is_stopped_and_waits_are_bounded():
    async def scenario():
        workers = Workers(1, 1.0, 2, gc.collect)
        workers.open()
        try:
            process = await first(workers)
            lasting = asyncio.ensure_future(workers.ask(time.sleep, 60))
            await asyncio.sleep(0.2)
            waiting = [asyncio.ensure_future(workers.ask(os.getpid)) for _ in range(2)]
            await asyncio.sleep(0.05)
            with pytest.raises(BusyError, match="too many requests wait"):
                await workers.ask(os.getpid)
            with pytest.raises(StoppedError, match="stopped after 1 s, the limit of a request"):
                await lasting
            await asyncio.gather(*waiting, return_exceptions=True)
            after = await first(workers)
            assert after != process
            assert gone(process)
            # A question that ends its process, and one that wants too much, end nothing else.
            with pytest.raises(StoppedError, match="needed more than it may have"):
                await workers.ask(os._exit, 3)
            again = await first(workers)
            # One that was ended by others while it had nothing to do.
            os.kill(again, signal.SIGKILL)
            await asyncio.sleep(0.2)
            with pytest.raises(StoppedError):
                await workers.ask(os.getpid)
            again = await first(workers)
            with pytest.raises(RefusedError, match="MemoryError"):
                await workers.ask(bytearray, 2 * MEMORY)
            with pytest.raises(RefusedError, match="division by zero"):
                await workers.ask(operator.truediv, 1, 0)
            with pytest.raises(RefusedError, match="an error of the server"):
                await workers.ask(operator.getitem, {}, "missing")
            assert await workers.ask(os.getpid) == again
        finally:
            workers.close()
        assert gone(again)

    asyncio.run(scenario())


def test_a_server_that_is_ended_while_it_starts_says_nothing(capfd):
    async def scenario(seconds):
        workers = Workers(2, 1.0, 2, functools.partial(time.sleep, 60))
        workers.open()
        await asyncio.sleep(seconds)
        workers.close()
        workers._threads.shutdown()
        assert all(gone(each._process.pid) for each in workers._workers if each._process)

    for seconds in (0, 0.05, 1):
        asyncio.run(scenario(seconds))
    assert capfd.readouterr().err == ""
