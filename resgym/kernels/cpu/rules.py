"""The rule and its random numbers for one game at a time.

A position is an array int64 [P, D] whose first ``count`` rows are points in descending
lexicographic order. The functions here change it in place and leave the rows behind alone; sizes
are small, loops leave early, and nothing is allocated.

``dims`` is something of length D. A tuple makes the number of axes known to the compiler, which
then unrolls the loops over them; an array int64 [D] gives code for any number.
"""

import numpy as np

from resgym.game import rng
from resgym.game import spec as limits
from resgym.kernels.cpu.compilation import inlined

_MAX_COORDINATE = limits.MAX_COORDINATE
_EXACT_FLOATS = 2**24  # integers below are float32 numbers
_WORD_BITS = 64
_LEAST_WIDTH = 12  # bits an axis; in narrower fields few moves fit, and trying costs more

# Random numbers: `resgym.game.rng` on unsigned integers. Mixing signed and unsigned ones would make
# floats of them, so every constant is a uint64.
_GAMMA = np.uint64(rng.GAMMA & rng.MASK_64)
_MULTIPLIER_1 = np.uint64(rng.MULTIPLIER_1 & rng.MASK_64)
_MULTIPLIER_2 = np.uint64(rng.MULTIPLIER_2 & rng.MASK_64)
_SHIFT_1, _SHIFT_2, _SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)
_HALF = np.uint64(32)


@inlined
def within(count, position):
    """A number of points that is not past the rows of a position: memory may have been written to.

    Players and rewards are handed live tensors; what they write must not be followed out of bounds.
    """
    return count if 0 <= count <= position.shape[0] else 0


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
def episode_key(seed, episode):
    """The key uint64 of ``RowRandom.for_episode``, of int64 numbers."""
    return absorb(_mix(np.uint64(seed) + _GAMMA), episode)


@inlined
def _integer(word, high):
    return np.int64(((word >> _HALF) * np.uint64(high)) >> _HALF)


@inlined
def integer(key, high):
    """``RowRandom.integers(high)``."""
    return _integer(_mix(key + _GAMMA), high)


@inlined
def _stays_behind(dims, points, row, point):
    """Whether a point may stand behind a row in descending lexicographic order."""
    dimension = len(dims)
    axis = 0
    while axis < dimension - 1 and points[row, axis] == point[axis]:
        axis += 1
    return points[row, axis] >= point[axis]


@inlined
def _sort_rows(dims, points, count, point):
    """Insertion sort, because a move leaves the rows nearly sorted; ``point`` has place for one."""
    dimension = len(dims)
    for row in range(1, count):
        for axis in range(dimension):
            point[axis] = points[row, axis]
        place = row
        while place > 0 and not _stays_behind(dims, points, place - 1, point):
            for axis in range(dimension):
                points[place, axis] = points[place - 1, axis]
            place -= 1
        if place < row:
            for axis in range(dimension):
                points[place, axis] = point[axis]


@inlined
def _coarse_words(dims, points, count, width, words):
    """Writes a word for each point: of every axis the leading bits, a field of ``width`` each.

    The fields of an axis are its coordinates shifted alike, so that the largest just fits below the
    field's highest bit. Where a point is <= another one on all axes, its fields are too.
    """
    for row in range(count):
        words[row] = 0
    for axis in range(len(dims)):
        largest = 0
        for row in range(count):
            largest |= points[row, axis]
        shift = 0
        for step in (32, 16, 8, 4, 2, 1):
            shift += step * np.int64(largest >> (shift + step - 1) >> (width - 1) != 0)
        for row in range(count):
            words[row] |= (points[row, axis] >> shift) << (axis * width)


@inlined
def _is_below(dims, points, one, other):
    """Whether a row is <= another one on all axes."""
    for axis in range(len(dims)):  # noqa: SIM110  numba has no generators in `all`
        if points[one, axis] > points[other, axis]:
            return False
    return True


@inlined
def _drop_covered(dims, points, count, words):
    """Keeps the minimal ones of sorted rows, in order; returns how many there are.

    Only a row further down can be <= a row. Kept rows gather at the end and move to the front at
    last. Most pairs are told apart by their coarse words, all axes at once as in `_least_words`.
    """
    dimension = len(dims)
    width = (_WORD_BITS - 1) // dimension
    _coarse_words(dims, points, count, width, words)
    guard = _guard_of(dims, width)
    first = count - 1
    for row in range(count - 2, -1, -1):
        word, covered = words[row] | guard, False
        for other in range(first, count):
            if (word - words[other]) & guard == guard and _is_below(dims, points, other, row):
                covered = True
                break
        if covered:
            continue
        first -= 1
        words[first] = words[row]
        if first != row:
            for axis in range(dimension):
                points[first, axis] = points[row, axis]
    kept = count - first
    if first > 0:
        for row in range(kept):
            for axis in range(dimension):
                points[row, axis] = points[first + row, axis]
    return kept


@inlined
def _reposition(dims, points, count):
    for axis in range(len(dims)):
        least = points[0, axis]
        for row in range(1, count):
            least = min(least, points[row, axis])
        for row in range(count):
            points[row, axis] -= least


@inlined
def _least_words(words, size, guard, target):
    """The minimal ones of points packed into words, in ascending order; returns their number.

    They are written behind ``target``, an index past the ``size`` words.

    A bit of ``guard`` stands above each coordinate and is 0 in every word. Set in the larger word,
    it survives a subtraction exactly where the coordinate below had nothing to borrow: all axes are
    compared at once. The least word is minimal, and goes with all that it covers.
    """
    count = 0
    while size > 0:
        least = words[0]
        for index in range(1, size):
            least = min(least, words[index])
        words[target + count] = least
        count += 1
        left = 0
        for index in range(size):
            word = words[index]
            words[left] = word
            left += np.int64(((word | guard) - least) & guard != guard)
        size = left
    return count


@inlined
def set_of_row(dims, coords):
    """The set of a row of flags [D], as a number whose bit j is axis j."""
    axis_mask = 0
    for axis in range(len(dims)):
        axis_mask |= np.int64(coords[axis]) << axis
    return axis_mask


@inlined
def _guard_of(dims, width):
    """The bits above the coordinates of a packed point: the highest of each field of ``width``."""
    guard = 0
    for axis in range(len(dims)):
        guard |= 1 << (axis * width + width - 1)
    return guard


@inlined
def _unpack(dims, points, words, first, count, width):
    """Writes ``count`` words in ascending order, from ``first`` on, as rows in descending order."""
    mask = (1 << (width - 1)) - 1
    for row in range(count):
        word = words[first + count - 1 - row]
        for axis in range(len(dims) - 1, -1, -1):
            points[row, axis] = word & mask
            word >>= width


@inlined
def _play_packed(dims, points, count, axis_mask, axis, scratch):
    """`play_move` with a point in one word; -1, with nothing changed, if one does not fit."""
    dimension = len(dims)
    width = (_WORD_BITS - 1) // dimension
    if width < _LEAST_WIDTH:
        return -1
    largest = 0
    for row in range(count):
        total = 0
        for other in range(dimension):
            total += points[row, other] & -((axis_mask >> other) & 1)
        word = 0
        for other in range(dimension):
            value = total if other == axis else points[row, other]
            largest |= value
            word = (word << width) | value
        scratch[row] = word
    if largest >> (width - 1) != 0:
        return -1
    kept = _least_words(scratch, count, _guard_of(dims, width), points.shape[0])
    _unpack(dims, points, scratch, points.shape[0], kept, width)
    return kept


@inlined
def play_move(dims, points, count, axis_mask, axis, reposition, scratch, numbers):
    """One move in a position of two or more points: their new number, or -1 if it would overflow.

    ``axis_mask`` is the host's set of at least two axes, bit j for axis j, and ``axis`` one of
    them. ``scratch`` int64 [2 P] and ``numbers`` int64 [D] or longer are overwritten.
    """
    kept = _play_packed(dims, points, count, axis_mask, axis, scratch)
    if kept < 0:
        for row in range(count):
            total = 0
            for other in range(len(dims)):
                total += points[row, other] & -((axis_mask >> other) & 1)
            if total > _MAX_COORDINATE:
                return -1
            scratch[row] = total
        for row in range(count):
            points[row, axis] = scratch[row]
        _sort_rows(dims, points, count, numbers)
        kept = _drop_covered(dims, points, count, scratch)
    if reposition:
        _reposition(dims, points, kept)
    return kept


@inlined
def draw_position(dims, points, key, values, scratch, numbers):
    """Draws as many points as ``numbers`` has place for; keeps the minimal ones, in order."""
    dimension = len(dims)
    num_points = numbers.shape[0] // dimension
    for index in range(numbers.shape[0]):  # as ``RowRandom.integers(values, n)``
        numbers[index] = _integer(_mix(key + np.uint64(index + 1) * _GAMMA), values)
    bits = 1
    while values > (1 << bits):
        bits += 1
    width = bits + 1
    if width * dimension >= _WORD_BITS:
        for row in range(num_points):
            for axis in range(dimension):
                points[row, axis] = numbers[row * dimension + axis]
        _sort_rows(dims, points, num_points, numbers)
        return _drop_covered(dims, points, num_points, scratch)
    # A point fits into one number, in which the first axis counts most.
    for row in range(num_points):
        word = 0
        for axis in range(dimension):
            word = (word << width) | numbers[row * dimension + axis]
        scratch[row] = word
    count = _least_words(scratch, num_points, _guard_of(dims, width), num_points)
    _unpack(dims, points, scratch, num_points, count, width)
    return count


@inlined
def draw_start(dims, points, key, values, attempts, reposition, scratch, numbers):
    """Writes a random unfinished position, all P rows of it; returns its number of points.

    As `resgym.game.rules.random_starts`, whose ``rng.key`` is ``key`` uint64: coordinates are
    0..values-1, after ``attempts`` draws comes the fixed start. ``scratch`` int64 [2 P] and
    ``numbers`` int64 [M D] are overwritten; M is how many points are drawn, 2 to P.
    """
    for attempt in range(attempts):
        count = draw_position(dims, points, absorb(key, attempt), values, scratch, numbers)
        if count > 1:
            if reposition:
                _reposition(dims, points, count)
            return count
    # {(1, 0, ..), (0, 1, ..)}
    for row in range(2):
        for axis in range(len(dims)):
            points[row, axis] = np.int64(axis == row)
    return 2


@inlined
def observe_position(dims, points, count, scale, seen):
    """Writes what a player sees of the points into float32 [P, D]; the other rows stay."""
    if not scale:
        for row in range(count):
            for axis in range(len(dims)):
                seen[row, axis] = np.float32(points[row, axis])
        return
    largest = 1
    for row in range(count):
        for axis in range(len(dims)):
            largest = max(largest, points[row, axis])
    # Divided as float64 and rounded once more, as in the reference. Below 2**24 a product with the
    # reciprocal, which is faster, is rounded to the same float32: no quotient is half-way between
    # two of them, the nearest is 2**-49 of itself away from that, and the product is off by 2**-52.
    divisor = np.float64(largest)
    exact = largest < _EXACT_FLOATS
    factor = 1.0 / divisor if exact else 1.0
    for row in range(count):
        for axis in range(len(dims)):
            value = np.float64(points[row, axis]) * factor
            seen[row, axis] = np.float32(value if exact else value / divisor)
