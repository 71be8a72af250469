"""Processes that answer: what is too long is stopped, and nothing piles up."""

import asyncio
import contextlib
import gc
import operator
import os
import signal
import time
from functools import partial

import pytest

from resgym.app.workers import MEMORY, RefusedError, Workers


async def first(workers):
    """The process's number, once it has started."""
    while True:
        with contextlib.suppress(RefusedError):
            return await workers.ask(os.getpid)


async def gone(process):
    for _ in range(600):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"process {process} goes on")


async def refused(question):
    with pytest.raises(RefusedError) as caught:
        await question
    return caught.value.status, caught.value.text


def test_what_lasts_is_stopped_and_waits_are_bounded():
    async def scenario():
        workers = Workers(1, 1.0, 2, gc.collect)
        workers.open()
        try:
            process = await first(workers)
            asked = [asyncio.ensure_future(workers.ask(time.sleep, 60)) for _ in range(3)]
            await asyncio.sleep(0)  # so that they are asked
            status, text = await refused(workers.ask(os.getpid))
            assert (status, "too many requests wait" in text) == (503, True)
            assert await refused(asked[0]) == (504, "stopped after 1 s, the limit of a request")
            await asyncio.gather(*asked, return_exceptions=True)
            await gone(process)
            assert await first(workers) != process
            # A question that ends its process, and one that wants too much, end nothing else.
            assert (await refused(workers.ask(os._exit, 3)))[0] == 504
            again = await first(workers)
            # One that was ended by others while it had nothing to do.
            os.kill(again, signal.SIGKILL)
            await gone(again)
            assert (await refused(workers.ask(os.getpid)))[0] == 504
            again = await first(workers)
            for function, arguments, line in [
                (bytearray, (2 * MEMORY,), "MemoryError"),
                (operator.truediv, (1, 0), "division by zero"),
                (operator.getitem, ({}, "missing"), "the server failed"),
            ]:
                status, text = await refused(workers.ask(function, *arguments))
                assert (status, line in text) == (400, True)
            assert await workers.ask(os.getpid) == again
        finally:
            workers.close()
        await gone(again)

    asyncio.run(scenario())


def say_and_wait(path):
    with open(path, "w") as file:
        file.write(str(os.getpid()))
    time.sleep(60)


def test_a_server_that_is_ended_while_it_starts_says_nothing(capfd, tmp_path):
    async def scenario():
        for number in range(2):
            said = tmp_path / str(number)
            workers = Workers(1, 1.0, 2, partial(say_and_wait, str(said)))
            workers.open()
            while number and not (said.exists() and said.read_text()):
                await asyncio.sleep(0.02)
            workers.close()
            if number:
                await gone(int(said.read_text()))

    began = time.monotonic()
    asyncio.run(scenario())
    assert time.monotonic() - began < 50
    assert capfd.readouterr().err == ""
