"""The loops of `rows`: one pass over rows of F numbers, group by group.

Needs numba. Letters as in `rows`; arrays are float32 and counts int64.
"""

import numpy as np

from resgym.kernels.cpu.compilation import compiled

_ZERO = np.float32(0.0)
_ONE = np.float32(1.0)


@compiled
def pack_canonical(points, rows, games, count):  # type: ignore[no-untyped-def]
    """Write the present points of `points` [N, P, D] in canonical form, as `rows.canonical_points`.

    Args:
        points: a row is absent if its first coordinate is negative.
        rows: [N P, D]; its first R rows get the R present points, game by game.
        games: [N P]; its first R entries get the games of these points.
        count: [N]; gets the number of present points of each game.

    Returns:
        R.
    """
    lowest = np.empty(points.shape[2], np.float32)
    end = 0
    for game in range(points.shape[0]):
        begin = end
        lowest[:] = np.inf
        for row in range(points.shape[1]):
            if points[game, row, 0] >= _ZERO:
                for axis in range(points.shape[2]):
                    rows[end, axis] = points[game, row, axis]
                    lowest[axis] = min(lowest[axis], rows[end, axis])
                games[end] = game
                end += 1
        count[game] = end - begin
        largest = _ZERO
        for row in range(begin, end):
            for axis in range(points.shape[2]):
                rows[row, axis] -= lowest[axis]
                largest = max(largest, rows[row, axis])
        if largest == _ZERO:
            largest = _ONE
        for row in range(begin, end):
            for axis in range(points.shape[2]):
                rows[row, axis] /= largest
    return end


@compiled
def pool(x, count, pooled):  # type: ignore[no-untyped-def]
    """Maximum and mean of each group's rows, to `pooled` [G, 2 F]; 0 without any."""
    size = x.shape[1]
    row = 0
    for group in range(count.shape[0]):
        highest, mean = pooled[group, :size], pooled[group, size:]
        mean[:] = _ZERO
        highest[:] = -np.inf if count[group] else _ZERO
        for _ in range(count[group]):
            for unit in range(size):
                highest[unit] = max(highest[unit], x[row, unit])
                mean[unit] += x[row, unit]
            row += 1
        mean /= np.float32(max(count[group], 1))


@compiled
def pool_backward(x, count, pooled, gradient, result):  # type: ignore[no-untyped-def]
    """From the gradient of `pooled` that of `x`, to `result`; rows of a maximum that tie share."""
    size = x.shape[1]
    begin = 0
    share = np.empty(size, np.float32)
    for group in range(count.shape[0]):
        end = begin + count[group]
        share[:] = _ZERO
        for row in range(begin, end):
            for unit in range(size):
                share[unit] += np.float32(x[row, unit] == pooled[group, unit])
        for unit in range(size):
            share[unit] = gradient[group, unit] / max(share[unit], _ONE)
        part = _ONE / np.float32(max(count[group], 1))
        for row in range(begin, end):
            for unit in range(size):
                won = np.float32(x[row, unit] == pooled[group, unit])
                result[row, unit] = won * share[unit] + part * gradient[group, size + unit]
        begin = end


@compiled
def quotient_features(sums, left, right, features):  # type: ignore[no-untyped-def]
    """`features.quotient_features` of [Q, S], for K pairs of columns, to `features` [Q, 2 K]."""
    number = left.shape[0]
    for row in range(sums.shape[0]):
        for pair in range(number):
            a = sums[row, left[pair]]
            b = sums[row, right[pair]]
            first = total = _ZERO
            if a * b < np.float32(-1e-9):
                larger, smaller = max(abs(a), abs(b)), min(abs(a), abs(b))
                zero = np.float32(2e-5) * larger + np.float32(1e-7)
                for step in range(7):
                    if not smaller > zero:
                        break
                    quotient = np.floor(larger / max(smaller, np.float32(1e-9)) + np.float32(4e-3))
                    quotient = min(quotient, np.float32(40.0))
                    total += quotient
                    if step == 0:
                        first = quotient
                    rest = max(larger - quotient * smaller, _ZERO)
                    larger, smaller = smaller, rest
            features[row, pair] = total / np.float32(10.0)
            features[row, number + pair] = first / np.float32(5.0)
