"""Choices of scripted players for one game at a time, equal to those of `resgym.players`."""

from resgym.kernels.backend import AGENTS
from resgym.kernels.cpu.compilation import inlined
from resgym.kernels.cpu.rules import integer

HOSTS = ("random", "random_pair", "all_coord", "zeillinger", "zeillinger_lex")
"""Hosts that `name_set` can play; it takes the index."""

_RANDOM_AGENT, _LAST = map(AGENTS.index, ("random", "choose_last"))
_RANDOM_HOST, _RANDOM_PAIR, _ALL_COORD, _ZEILLINGER_LEX = map(
    HOSTS.index, ("random", "random_pair", "all_coord", "zeillinger_lex")
)


@inlined
def answer_set(agent, axis_mask, dimension, key):
    """The axis that an agent (an index) chooses from a set that is not empty, bit j for axis j."""
    skip = 0
    if agent == _RANDOM_AGENT:
        size = 0
        for axis in range(dimension):
            size += (axis_mask >> axis) & 1
        skip = integer(key, size)
    chosen = 0
    for axis in range(dimension):
        if (axis_mask >> axis) & 1:
            chosen = axis
            if skip == 0 and agent != _LAST:
                break
            skip -= 1
    return chosen


@inlined
def _zeillinger_set(dims, points, count, least_axes):
    """Zeillinger's pair of axes; see `resgym.players.scripted`."""
    dimension = len(dims)
    best_spread, best_key, best_low, best_high = -1, 0, 0, 0
    for one in range(count - 1):
        for other in range(one + 1, count):
            low = high = points[one, 0] - points[other, 0]
            first_low = first_high = 0
            num_low = num_high = 1
            for axis in range(1, dimension):
                value = points[one, axis] - points[other, axis]
                if value < low:
                    low, first_low, num_low = value, axis, 1
                elif value == low:
                    num_low += 1
                if value > high:
                    high, first_high, num_high = value, axis, 1
                elif value == high:
                    num_high += 1
            spread = high - low
            key = num_low + num_high
            if least_axes:
                key = (key * dimension + first_low) * dimension + first_high
            if (
                best_spread < 0
                or spread < best_spread
                or (spread == best_spread and key < best_key)
            ):
                best_spread, best_key, best_low, best_high = spread, key, first_low, first_high
    if best_low == best_high:
        return 3
    return (1 << best_low) | (1 << best_high)


@inlined
def name_set(dims, host, points, count, sets, key):
    """The set, bit j for axis j, that a host (an index) names in a position int64 [P, D].

    ``sets`` are those of `resgym.kernels.backend.set_numbers` for this host, ``key`` uint64 is the
    row's random numbers.
    """
    if host in (_RANDOM_HOST, _RANDOM_PAIR):
        return sets[integer(key, sets.shape[0])]
    if host == _ALL_COORD:
        return sets[-1] if count > 1 else sets[0]
    return _zeillinger_set(dims, points, count, host == _ZEILLINGER_LEX)
