"""`resgym.game.rng` for one row at a time, on unsigned integers.

Mixing signed and unsigned integers would make floats of them, so every constant here is a uint64.
"""

from __future__ import annotations

import numpy as np

from resgym.game import rng
from resgym.kernels.cpu.compilation import inlined

__all__ = ["absorb", "episode_key", "integer", "integers"]

_GAMMA = np.uint64(rng.GAMMA & rng.MASK_64)
_MULTIPLIER_1 = np.uint64(rng.MULTIPLIER_1 & rng.MASK_64)
_MULTIPLIER_2 = np.uint64(rng.MULTIPLIER_2 & rng.MASK_64)
_SHIFT_1, _SHIFT_2, _SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)
_HALF = np.uint64(32)


@inlined
def _mix(value):
    value = (value ^ (value >> _SHIFT_1)) * _MULTIPLIER_1
    value = (value ^ (value >> _SHIFT_2)) * _MULTIPLIER_2
    return value ^ (value >> _SHIFT_3)


@inlined
def absorb(key, word):
    """The key uint64 that a key uint64 becomes with one more word."""
    return _mix((key ^ np.uint64(word)) + _GAMMA)


@inlined
def _integer(word, high):
    return np.int64(((word >> _HALF) * np.uint64(high)) >> _HALF)


@inlined
def integer(key, high):
    """``RowRandom.integers(high)``."""
    return _integer(_mix(key + _GAMMA), high)


@inlined
def integers(key, high, out):
    """``RowRandom.integers(high, n)`` into int64 [n]."""
    for index in range(out.shape[0]):
        out[index] = _integer(_mix(key + np.uint64(index + 1) * _GAMMA), high)


@inlined
def episode_key(seed, episode):
    """The key uint64 of ``RowRandom.for_episode``, of int64 numbers."""
    return absorb(_mix(np.uint64(seed) + _GAMMA), episode)
