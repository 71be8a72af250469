"""Rows shared out between threads: each once, from several threads at once, and after a fork."""

import multiprocessing
import os
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

pytest.importorskip("numba")

from resgym.kernels.cpu import backend
from resgym.kernels.cpu.backend import share_rows


@pytest.fixture(autouse=True)
def little_work_is_enough(monkeypatch):
    before = torch.get_num_threads()
    monkeypatch.setattr(backend, "_LEAST_WORK", 3)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("num_threads", [1, 2, 3, 8])
@pytest.mark.parametrize("num_rows", [1, 2, 7, 100, 1001])
def test_every_row_once(num_rows, num_threads):
    torch.set_num_threads(num_threads)
    seen = [0] * num_rows
    names = set()

    def function(begin, end, step):
        names.add(threading.current_thread().name)
        for row in range(begin, end):
            seen[row] += step
        return end - begin

    assert share_rows(function, num_rows, 3, 2) == num_rows
    assert seen == [2] * num_rows
    assert len(names) <= num_threads


def test_more_than_one_thread_takes_part():
    torch.set_num_threads(2)
    meet = threading.Barrier(2, timeout=60)

    def function(begin, end):
        if begin in (0, 13):  # two blocks that can only be passed together
            meet.wait()
        return 1

    assert share_rows(function, 100, 3) == 8


def play(seed):
    """The state after some moves of a compiled environment."""
    from resgym.envs.environments import HironakaVectorEnv

    env = HironakaVectorEnv(64, seat="host", backend="numba")
    env.reset(seed=seed)
    for step in range(25):
        env.step(torch.full((64,), step % 4))
    return env.games.points


def _child(expected):
    os._exit(0 if torch.equal(play(1), expected) else 1)


def test_several_threads_at_once_and_after_a_fork():
    torch.set_num_threads(2)
    expected = [play(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as users:
        assert all(map(torch.equal, users.map(play, range(4)), expected))
    if not hasattr(os, "fork"):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking beside threads is the point
        child = multiprocessing.get_context("fork").Process(target=_child, args=(expected[1],))
        child.start()
    child.join(timeout=120)
    if child.is_alive():
        child.kill()
    assert child.exitcode == 0
