"""Ranks that are forked from the process of the tests, with the variables that torchrun sets."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import socket
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import torch

from sb3_ext.runs.ranks import Ranks, torchrun

SECONDS = 120


def variables(rank: int, size: int, port: int) -> dict[str, str]:
    """What torchrun tells a rank."""
    names = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "MASTER_PORT": port}
    return {"MASTER_ADDR": "127.0.0.1"} | {name: str(value) for name, value in names.items()}


def free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])


def on_ranks(work: Callable[[Ranks], Any], size: int = 2) -> list[Any]:
    """What a function returns in each of several ranks, or the text of the error that it raises.

    None of them is alive afterwards.
    """

    def run(rank: int, answer: Connection) -> None:
        torch.set_num_threads(1)
        os.environ.update(variables(rank, size, port))
        try:
            with torchrun() as ranks:
                result = work(ranks)
        except BaseException as error:
            result = f"{type(error).__name__}: {error}"
        answer.send_bytes(pickle.dumps(result))  # `send` would share memory that ends with it

    port = free_port()
    context = multiprocessing.get_context("fork")
    pipes = [context.Pipe(duplex=False) for _ in range(size)]
    started = [
        context.Process(target=run, args=(rank, there)) for rank, (_, there) in enumerate(pipes)
    ]
    for process, (_, there) in zip(started, pipes, strict=True):
        process.start()
        there.close()
    try:
        results = []
        for here, _ in pipes:
            assert here.poll(SECONDS), "a rank has not answered"
            results.append(pickle.loads(here.recv_bytes()))
        for process in started:
            process.join(SECONDS)
        assert [process.exitcode for process in started] == [0] * size
    finally:
        for process in started:
            process.kill()
            process.join()
    return results
