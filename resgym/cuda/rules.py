"""Parts of the Triton kernels: random numbers, pruning, and the writing of a position.

Letters of tiles: G games of one program, R rows, a power of two that is at least P; tensors have P
rows and D axes. Points are a tuple of D tiles int64 [G, R], one per axis; rows that hold no point
are 0 there and out of the mask. Everything here is inlined into `resgym.cuda.kernels`.
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language import constexpr

from resgym.game import rng, spec
from resgym.kernels.backend import AGENTS

_GAMMA = constexpr(rng.GAMMA & rng.MASK_64)
_MULTIPLIER_1 = constexpr(rng.MULTIPLIER_1 & rng.MASK_64)
_MULTIPLIER_2 = constexpr(rng.MULTIPLIER_2 & rng.MASK_64)
_MAX_COORDINATE = constexpr(spec.MAX_COORDINATE)

_FIRST = constexpr(AGENTS.index("choose_first"))
_LAST = constexpr(AGENTS.index("choose_last"))


# Random numbers: `resgym.game.rng` on uint64.


@triton.jit
def _mix(value):
    value = (value ^ (value >> 30)) * _MULTIPLIER_1
    value = (value ^ (value >> 27)) * _MULTIPLIER_2
    return value ^ (value >> 31)


@triton.jit
def absorb(key, word):
    """The key uint64 that a key becomes with one more word, uint64 or a small constant."""
    return _mix((key ^ word) + _GAMMA)


@triton.jit
def episode_key(seed, episode):
    """The key uint64 of ``RowRandom.for_episode``, of int64 numbers."""
    return absorb(_mix(seed.to(tl.uint64) + _GAMMA), episode.to(tl.uint64))


@triton.jit
def _below(word, high):
    return (((word >> 32) * high.to(tl.uint64)) >> 32).to(tl.int64)


@triton.jit
def integer(key, high):
    """``RowRandom.integers(high)`` as int64, for keys uint64 and an int64 tile or scalar."""
    return _below(_mix(key + _GAMMA), high)


# Sets of axes, as numbers whose bit j is axis j.


@triton.jit
def load(field, places, mask):
    """The entries of a field at these places; 0 outside the mask."""
    return tl.load(field + places, mask=mask, other=0)


@triton.jit
def load_set(coords, games, mask, D: constexpr):
    """The sets int64 [G] of rows of flags uint8 [N, D]."""
    axis_mask = tl.zeros(games.shape, tl.int64)
    for axis in tl.static_range(D):
        axis_mask |= (load(coords, games * D + axis, mask) != 0).to(tl.int64) << axis
    return axis_mask


@triton.jit
def store_set(coords, games, axis_mask, mask, D: constexpr):
    """Writes sets int64 [G] as rows of flags of one byte each, [N, D]."""
    for axis in tl.static_range(D):
        tl.store(coords + games * D + axis, (axis_mask >> axis) & 1, mask=mask)


@triton.jit
def choose_axis(axis_mask, key, AGENT: constexpr, D: constexpr):
    """The axis int64 [G] that a scripted agent chooses from sets int64 [G].

    ``AGENT`` is an index in `AGENTS`.
    """
    size = tl.zeros_like(axis_mask)
    for axis in tl.static_range(D):
        size += (axis_mask >> axis) & 1
    if AGENT == _FIRST:
        skip = 0
    elif AGENT == _LAST:
        skip = size - 1
    else:
        skip = integer(key, size)
    chosen = tl.zeros_like(axis_mask)
    passed = tl.zeros_like(axis_mask)
    for axis in tl.static_range(D):
        bit = (axis_mask >> axis) & 1
        chosen = tl.where((bit == 1) & (passed == skip), axis, chosen)
        passed += bit
    return chosen


@triton.jit
def _ones(bits):
    """How many bits are set, int32, for uint32 or uint64."""
    if bits.dtype == tl.uint32:
        bits = bits - ((bits >> 1) & 0x55555555)
        bits = (bits & 0x33333333) + ((bits >> 2) & 0x33333333)
        bits = (bits + (bits >> 4)) & 0x0F0F0F0F
        total = (bits * 0x01010101) >> 24
    else:
        bits = bits - ((bits >> 1) & 0x5555555555555555)
        bits = (bits & 0x3333333333333333) + ((bits >> 2) & 0x3333333333333333)
        bits = (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0F
        total = (bits * 0x0101010101010101) >> 56
    return total.to(tl.int32)


@triton.jit
def prune(points, alive, before, D: constexpr, G: constexpr, R: constexpr):
    """Find the minimal points of games, and their order.

    Args:
        points: a tuple of D int64 tiles [G, R], one for each axis.
        alive: bool [G, R], the rows that hold a point.
        before: int64 [G], the number of these rows, which come first.
        D: number of axes.
        G: number of games of a tile.
        R: number of rows of a game, a power of two.

    Returns:
        kept: bool [G, R], the distinct minimal points.
        rank: int32 [G, R], for each kept point the number of those that are lexicographically
            larger.
        count: int64 [G], the number of kept points.
    """
    row = tl.arange(0, R)[None, :]
    # A bit for each row; narrow words are cheaper.
    if R <= 32:  # noqa: SIM108
        one = tl.full((G, R), 1, tl.uint32)
    else:
        one = tl.full((G, R), 1, tl.uint64)
    above = tl.zeros_like(one)
    covered = tl.zeros((G, R), tl.int1)
    present = alive.to(tl.int32)
    for other in range(0, tl.max(before, 0).to(tl.int32)):
        index = tl.zeros((G, 1), tl.int32) + other
        other_alive = tl.gather(present, index, 1) != 0
        covers = alive & other_alive
        same = covers
        higher = tl.zeros((G, R), tl.int1)
        # From the last axis to the first, which decides the order.
        for step in tl.static_range(D):
            value = points[D - 1 - step]
            rival = tl.gather(value, index, 1)
            covers = covers & (rival <= value)
            equal = value == rival
            higher = (rival > value) | (equal & higher)
            same = same & equal
        # Of equal points the first one stays.
        covered = covered | (covers & (~same | (row > other)))
        above |= tl.where(other_alive & higher, one << index.to(one.dtype), 0)
    kept = alive & ~covered
    chosen = tl.sum(tl.where(kept, one << row.to(one.dtype), 0), 1)
    return kept, _ones(above & chosen[:, None]), _ones(chosen).to(tl.int64)


@triton.jit
def load_points(points, games, mask, P: constexpr, D: constexpr, R: constexpr):
    """The points of games int64 [G] where ``mask`` bool [G, R] holds, from int64 [N, P, D]."""
    place = (games[:, None] * P + tl.arange(0, R)[None, :]) * D
    columns = ()
    for axis in tl.static_range(D):
        columns = columns + (load(points, place + axis, mask),)  # noqa: RUF005
    return columns


@triton.jit
def played_points(points, axis_mask, axis, wanted, D: constexpr, G: constexpr, R: constexpr):
    """The points after a move, not pruned yet.

    The hosts' sets, the agents' axes and which games are to move are [G]. Also gives bool [G],
    which of these stay because a coordinate would overflow.
    """
    total = tl.zeros((G, R), tl.int64)
    for other in tl.static_range(D):
        total += tl.where((((axis_mask >> other) & 1) == 1)[:, None], points[other], 0)
    overflow = wanted & (tl.max(total, 1) > _MAX_COORDINATE)
    moved = wanted & ~overflow
    after = ()
    for other in tl.static_range(D):
        here = (moved & (axis == other))[:, None]
        after = after + (tl.where(here, total, points[other]),)  # noqa: RUF005
    return after, overflow


@triton.jit
def _store_axis(target, value, place, empty, kept, absent, mask):
    """Writes one coordinate of points to their places, and -1 to the places without a point."""
    tl.store(target + place, value, mask=kept & mask)
    tl.store(target + empty, -1, mask=absent & mask)


@triton.jit
def store_points(
    state, seen, final, points, kept, rank, count, games, keep, show,
    SCALE: constexpr, REPOSITION: constexpr, FINAL: constexpr,
    P: constexpr, D: constexpr, G: constexpr, R: constexpr,
):  # fmt: skip
    """Writes positions, as state int64 [N, P, D] and as what is seen of them, float32 [N, P, D].

    state: where the state goes.
    seen: where the observation goes.
    final: where it goes a second time, if ``FINAL``.
    points: unpacked.
    kept: bool [G, R], those that are written.
    rank: int32 [G, R], their places.
    count: int64 [G], how many there are.
    games: int64 [G], rows of the tensors.
    keep: bool [G], games that are written to ``state`` and ``seen``.
    show: bool [G], games that are written to ``final``.
    SCALE: whether observed points are divided by the largest coordinate.
    REPOSITION: whether to subtract the least coordinates first.
    """
    row = tl.arange(0, R)[None, :]
    if REPOSITION:
        lower = ()
        for axis in tl.static_range(D):
            least = tl.min(tl.where(kept, points[axis], _MAX_COORDINATE), 1)
            lower = lower + (points[axis] - least[:, None],)  # noqa: RUF005
        points = lower
    place = (games[:, None] * P + rank) * D
    absent = (row >= count[:, None]) & (row < P)
    empty = (games[:, None] * P + row) * D
    largest = tl.full((G, R), 1, tl.int64)
    for axis in tl.static_range(D):
        largest = tl.maximum(largest, points[axis])
    most = tl.max(tl.where(kept, largest, 1), 1)[:, None].to(tl.float64)
    for axis in tl.static_range(D):
        value = points[axis]
        _store_axis(state + axis, value, place, empty, kept, absent, keep[:, None])
        # Divided as float64 and rounded once more, as in the reference.
        if SCALE:  # noqa: SIM108
            sight = (value.to(tl.float64) / most).to(tl.float32)
        else:
            sight = value.to(tl.float32)
        _store_axis(seen + axis, sight, place, empty, kept, absent, keep[:, None])
        if FINAL:
            _store_axis(final + axis, sight, place, empty, kept, absent, show[:, None])


@triton.jit
def draw_starts(
    state, seen, games, pending, key, num_drawn, values, attempts,
    SCALE: constexpr, REPOSITION: constexpr,
    P: constexpr, D: constexpr, G: constexpr, R: constexpr,
):  # fmt: skip
    """Draws starts as `resgym.game.rules.random_starts` and writes them; see `store_points`.

        pending: bool [G], which games get a start.
        key: uint64 [G], what ``rng.key`` is there.
        num_drawn: points drawn, 2 to P.
        values: int64, coordinates are 0..values-1.
        attempts: draws before the fixed start.

    Returns:
        int64 [G], the number of points, where ``pending`` holds.
    """
    row = tl.arange(0, R)[None, :]
    drawn = tl.zeros((G,), tl.int64)
    attempt = tl.zeros((), tl.int64)
    while tl.max(pending.to(tl.int32), 0) > 0:
        draws = absorb(key, attempt.to(tl.uint64))[:, None]
        # The fixed start {(1, 0, ..), (0, 1, ..)} ends the loop: it is never finished.
        fixed = attempt >= attempts
        rows = tl.zeros((G,), tl.int64) + tl.where(fixed, 2, num_drawn)
        alive = (row < rows[:, None]) & pending[:, None]
        points = ()
        for axis in tl.static_range(D):
            word = _mix(draws + (row * D + (axis + 1)).to(tl.uint64) * _GAMMA)
            value = tl.where(fixed, row == axis, _below(word, values))
            points = points + (tl.where(alive, value, 0),)  # noqa: RUF005
        kept, rank, count = prune(points, alive, rows, D, G, R)
        taken = pending & (count > 1)
        store_points(
            state, seen, seen, points, kept, rank, count, games, taken, taken,
            SCALE, REPOSITION, False, P, D, G, R,
        )  # fmt: skip
        drawn = tl.where(taken, count, drawn)
        pending = pending & ~taken
        attempt += 1
    return drawn
