"""How the Triton kernels are cut into programs, and their launch.

Importing this module needs Triton. With ``TRITON_INTERPRET=1`` in the environment before the first
import of Triton, its interpreter runs the kernels on the CPU: slow, for tests.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from triton import knobs

from resgym.game.spec import GameSpec

INTERPRETED = bool(knobs.runtime.interpret)
"""Whether the kernels of this process run in the interpreter."""

MAX_NUM_POINTS = 64
"""Rows of a position that the kernels can hold: each is a bit of one word."""

_LANES = 32


class Cut(NamedTuple):
    """How kernels for P points and D axes are compiled.

    Attributes:
        games: games of a program.
        rows: power of two, at least P.
        axes: axes that share a word while coordinates are small.
    """

    games: int
    rows: int
    axes: int


def _shared(dimension: int, most: int) -> int:
    """The least number of axes a word, at most ``most``, that needs no more words than that."""
    words = -(-dimension // min(most, dimension))
    return -(-dimension // words)


@lru_cache(maxsize=256)
def cut(num_points: int, dimension: int) -> Cut:
    """The fixed table: nothing is tried out, so a launch may be captured in a CUDA graph.

    A lane holds two points of up to five axes, or one of more, which keeps them in registers.
    """
    rows = 1 << (num_points - 1).bit_length()
    points = _LANES * (2 if dimension <= 5 else 1)
    return Cut(max(1, points // rows), rows, _shared(dimension, 3))


def drawn_axes(spec: GameSpec) -> int:
    """Axes that share a word in the pruning of random starts: each takes its bits and one more."""
    return _shared(spec.dimension, max(1, 63 // (spec.max_value.bit_length() + 1)))


def flags_of(tensor: Tensor) -> Tensor:
    """A tensor of booleans as bytes, without a copy."""
    return tensor.contiguous().view(torch.uint8)


def launch(
    kernel: Any, num_games: int, spec: GameSpec, device: torch.device, *arguments: Any, **flags: Any
) -> None:
    """Runs one of `resgym.kernels.cuda.kernels` on all games; waits for nothing.

    It is compiled at the first launch with its constants, the ``flags`` and the sizes of the game,
    whatever the arguments are.
    """
    if num_games == 0:
        return
    how = cut(spec.max_num_points, spec.dimension)
    sizes = {"P": spec.max_num_points, "D": spec.dimension, "G": how.games, "R": how.rows}
    grid = (-(-num_games // how.games),)
    # Triton launches on the current device, which need not be that of the tensors.
    with torch.cuda.device(device) if device.type == "cuda" else nullcontext():
        # One warp, so that no reduction waits for another.
        kernel[grid](*arguments, **flags, **sizes, num_warps=1)
