"""Ranks that are forked from the process of the tests, with the variables that torchrun sets."""

import faulthandler
import multiprocessing
import os
import pickle
import socket

import torch

from sb3_ext.runs.ranks import torchrun

SECONDS = 120


def free_port():
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])


def variables(rank, size, port):
    """What torchrun tells a rank."""
    numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "MASTER_PORT": port}
    return {"MASTER_ADDR": "127.0.0.1"} | {name: str(value) for name, value in numbers.items()}


def forked(work, size=2):
    """What a function of the rank returns in each process; None where it was killed.

    None of them is alive afterwards.
    """

    def run(rank, answer):
        faulthandler.dump_traceback_later(SECONDS - 20)  # where one waits that does not answer
        torch.set_num_threads(1)
        os.environ.update(variables(rank, size, port))
        # The pipe's own `send` would share memory, which ends with this process.
        answer.send_bytes(pickle.dumps(work(rank)))

    port = free_port()
    context = multiprocessing.get_context("fork")
    pipes = [context.Pipe(duplex=False) for _ in range(size)]
    started = [
        context.Process(target=run, args=(rank, there)) for rank, (_, there) in enumerate(pipes)
    ]
    for process, (_, there) in zip(started, pipes, strict=True):
        process.start()
        there.close()
    results = []
    try:
        for here, _ in pipes:
            assert here.poll(SECONDS), f"rank {len(results)} has not answered"
            try:
                results.append(pickle.loads(here.recv_bytes()))
            except EOFError:
                results.append(None)
        for process in started:
            process.join(SECONDS)
            assert process.exitcode is not None
    finally:
        for process in started:
            process.kill()
            process.join()
    return results


def on_ranks(work, size=2):
    """What a function returns in each of several ranks, or the text of the error that it raises."""

    def connected(_):
        try:
            with torchrun() as ranks:
                return work(ranks)
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    return forked(connected, size)
