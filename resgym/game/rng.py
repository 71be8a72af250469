"""Counter-based random numbers: one 64-bit key per row, and no generator state.

A row's numbers depend only on (seed, episode, step, stream, index). The mixing function is the
finaliser of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
OOPSLA 2014); a key absorbs one word after the other through it. Torch has no unsigned 64-bit
arithmetic: int64 products wrap, and right shifts are masked.
"""

from __future__ import annotations

import torch
from torch import Tensor

GAMMA = 0x9E3779B97F4A7C15 - 2**64
MULTIPLIER_1 = 0xBF58476D1CE4E5B9 - 2**64
MULTIPLIER_2 = 0x94D049BB133111EB - 2**64
MASK_64 = 2**64 - 1


class Stream:
    """Independent streams of random numbers within one step."""

    START = 0
    HOST = 1
    AGENT = 2


def _shift_right(value: Tensor, bits: int) -> Tensor:
    return (value >> bits) & ((1 << (64 - bits)) - 1)


def mix64(value: Tensor) -> Tensor:
    """Apply the SplitMix64 finaliser to every entry of an int64 tensor."""
    value = (value ^ _shift_right(value, 30)) * MULTIPLIER_1
    value = (value ^ _shift_right(value, 27)) * MULTIPLIER_2
    return value ^ _shift_right(value, 31)


def _absorb(key: Tensor, word: Tensor | int) -> Tensor:
    return mix64((key ^ word) + GAMMA)


def derive_seed(seed: int, *words: int) -> int:
    """Derive a seed in 0..2^63-1 from a seed and further words, any integers.

    It is used where one seed must give several unrelated ones (evaluation, players, learners).
    """
    # The low 64 bits of each, as a signed number.
    first, *others = (((word + 2**63) & MASK_64) - 2**63 for word in (seed, *words))
    key = mix64(torch.tensor(first) + GAMMA)
    for word in others:
        key = _absorb(key, word)
    return int(_shift_right(key, 1))


class RowRandom:
    """Random numbers of N rows, from keys int64 [N] and words (int64 [N] or int) that they absorb.

    Drawing does not advance anything: the same call gives the same numbers. `split` gives unrelated
    numbers. Keys are computed on first use, because many players need no numbers.
    """

    __slots__ = ("_pending",)

    def __init__(self, key: Tensor, *words: Tensor | int) -> None:
        self._pending = key, words

    @property
    def key(self) -> Tensor:
        """int64 [N], one key per row."""
        key, words = self._pending
        if words:
            for word in words:
                key = _absorb(key, word)
            self._pending = key, ()
        return key

    @classmethod
    def for_episode(cls, seed: Tensor, episode: Tensor | int = 0) -> RowRandom:
        """Make keys from row seeds int64 [N] and episode counters int64 [N], or one for all."""
        return cls(_absorb(mix64(seed + GAMMA), episode))

    def at(self, step: Tensor | int, stream: int) -> RowRandom:
        """Return the numbers at a step ([N] or one int) of the rows' episodes, for one `Stream`."""
        return RowRandom(self.key, step, stream)

    def split(self, stream: int) -> RowRandom:
        """Return unrelated numbers for the same rows."""
        return RowRandom(self.key, stream)

    def select(self, index: Tensor) -> RowRandom:
        """Return the rows of ``index`` (int64 or bool)."""
        key, words = self._pending
        return RowRandom(
            key[index], *(word[index] if isinstance(word, Tensor) else word for word in words)
        )

    def words(self, n: int | None = None) -> Tensor:
        """Return raw 64-bit words, int64 [N] or [N, n]."""
        if n is None:
            return mix64(self.key + GAMMA)
        counter = torch.arange(1, n + 1, device=self.key.device) * GAMMA
        return mix64(self.key[:, None] + counter)

    def integers(self, high: int | Tensor, n: int | None = None) -> Tensor:
        """Draw uniform int64 [N] or [N, n] in 0..high-1; high is an int or int64 [N], 1 to 2^31.

        The bias of the multiply-shift method is below high / 2^32.
        """
        top = _shift_right(self.words(n), 32)
        if isinstance(high, Tensor) and n is not None:
            high = high[:, None]
        return (top * high) >> 32

    def uniform(self, n: int | None = None) -> Tensor:
        """Draw uniform float32 in [0, 1) with 24 random bits, [N] or [N, n]."""
        return _shift_right(self.words(n), 40).to(torch.float32) * 2.0**-24
