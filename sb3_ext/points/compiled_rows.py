"""The loops of `point_rows.CompiledRows`: one pass over rows of F numbers, game by game.

Needs numba. Letters as in `point_rows`; arrays are float32 and counts int64.
"""

from __future__ import annotations

import numpy as np

from resgym.kernels.cpu.compilation import compiled

_ZERO = np.float32(0.0)
_ONE = np.float32(1.0)


@compiled
def count_points(points, count):  # type: ignore[no-untyped-def]
    """The points of each game [N] of [N, P, D], written to `count`; returns R."""
    total = 0
    for game in range(points.shape[0]):
        here = 0
        for row in range(points.shape[1]):
            here += points[game, row, 0] >= _ZERO
        count[game] = here
        total += here
    return total


@compiled
def pack_canonical(points, rows, games):  # type: ignore[no-untyped-def]
    """`point_inputs.canonical_points`, present rows alone: to `rows` [R, D] and `games` [R]."""
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


@compiled
def pool(x, count, pooled):  # type: ignore[no-untyped-def]
    """Maximum and mean of each game's rows, to `pooled` [N, 2 F]; 0 without any."""
    size, row = x.shape[1], 0
    for game in range(count.shape[0]):
        highest, mean = pooled[game, :size], pooled[game, size:]
        mean[:] = _ZERO
        highest[:] = -np.inf if count[game] else _ZERO
        for _ in range(count[game]):
            for unit in range(size):
                highest[unit] = max(highest[unit], x[row, unit])
                mean[unit] += x[row, unit]
            row += 1
        mean /= np.float32(max(count[game], 1))


@compiled
def pool_backward(x, count, pooled, gradient, result):  # type: ignore[no-untyped-def]
    """From the gradient of `pooled` that of `x`, to `result`; rows of a maximum that tie share."""
    size, begin = x.shape[1], 0
    share = np.empty(size, np.float32)
    for game in range(count.shape[0]):
        end = begin + count[game]
        share[:] = _ZERO
        for row in range(begin, end):
            for unit in range(size):
                share[unit] += np.float32(x[row, unit] == pooled[game, unit])
        for unit in range(size):
            share[unit] = gradient[game, unit] / max(share[unit], _ONE)
        part = _ONE / np.float32(max(count[game], 1))
        for row in range(begin, end):
            for unit in range(size):
                won = np.float32(x[row, unit] == pooled[game, unit])
                result[row, unit] = won * share[unit] + part * gradient[game, size + unit]
        begin = end


@compiled
def add_to_rows(x, around, count, result):  # type: ignore[no-untyped-def]
    """`x` [R, F] plus `around` [N, F] of the row's game, to `result`."""
    row = 0
    for game in range(count.shape[0]):
        of_game = around[game]
        for _ in range(count[game]):
            given, added = x[row], result[row]
            for unit in range(of_game.shape[0]):
                added[unit] = given[unit] + of_game[unit]
            row += 1


@compiled
def sum_of_rows(x, count, result):  # type: ignore[no-untyped-def]
    """The sums of each game's rows [R, F], to `result` [N, F]."""
    row = 0
    for game in range(count.shape[0]):
        total = result[game]
        total[:] = _ZERO
        for _ in range(count[game]):
            given = x[row]
            for unit in range(total.shape[0]):
                total[unit] += given[unit]
            row += 1
