"""Shares the rows of a batch out between threads.

Compiled functions run without the GIL, so plain threads do; numba's own ones abort when two threads
of a program use them at once, and hang in a process that was forked.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import torch

_LEAST_WORK = 3 * 1024
"""Rows times axes for which one more thread is worth its waking up."""

_BLOCKS_PER_THREAD = 4


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="resgym")


if hasattr(os, "register_at_fork"):
    # The threads of a parent process do not live on in a forked child.
    os.register_at_fork(after_in_child=_threads.cache_clear)


def share_rows(function: Callable[..., int], num_rows: int, dimension: int, *arguments: Any) -> int:
    """The sum of a compiled ``function(begin, end, *arguments)`` over ranges that cover all rows.

    As many threads take part as torch uses (`torch.set_num_threads`) and the work is worth, which
    grows with the game's ``dimension``. No row's results may depend on the range it is in.
    """
    parts = num_rows * dimension // _LEAST_WORK
    if parts > 1:
        parts = min(parts, torch.get_num_threads())
    if parts <= 1:
        return function(0, num_rows, *arguments)
    size = -(-num_rows // (parts * _BLOCKS_PER_THREAD))
    blocks = iter(range(0, num_rows, size))

    def work() -> int:
        total = 0
        # A free thread takes the next block: taking it is one operation under the GIL.
        while (begin := next(blocks, None)) is not None:
            total += function(begin, min(begin + size, num_rows), *arguments)
        return total

    threads = _threads()
    others = [threads.submit(work) for _ in range(parts - 1)]
    total = work()
    # On a busy machine the rows may be done before another thread has begun.
    return total + sum(other.result() for other in others if not other.cancel())
