"""Compiled: the table of positions of a search, and what one step of it adds to the table.

Positions are kept as keys (see `resgym.solver.forms`), which are compared in full, so equal hashes
do no harm. Position 0 stands for everything finished.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from resgym.kernels.cpu.compilation import compiled, inlined
from resgym.kernels.cpu.rules import play_move
from resgym.solver.bounds import WIDEST, Goal
from resgym.solver.forms import (
    HERE,
    KEY,
    LARGEST,
    LIST,
    ORDER,
    THERE,
    TRIAL,
    add_up,
    canonical_key,
    compare,
    copy,
    drop_covered,
    hash_of,
    moves_after,
    moves_of,
    reduce,
    unpack,
)
from resgym.solver.search import NO_TREE

POSITIONS, WORDS, ANSWERS, EXPANDED, HEIGHT = range(5)
"""Counters: what is in use, how many positions have been expanded, the height of the stack."""

START, SIZE, LEFT, HASH, LOWER, UPPER, TOTAL, SHADOWS, MOVES, END = range(10)
"""A position: where its key begins, its points, moves that remain (-1 for any number), hash, proved
bounds of the value, the sum of the bounds of its projections, where these and its moves begin among
the answers (-1: not generated yet), where the moves end."""


class Table(NamedTuple):
    """A table of positions.

    Attributes:
        goal: what is optimised.
        cut: bool [1], whether a position with no move remaining costs its bound, or `NO_TREE`.
        sets: int64 [A], the host's sets in the order of the search, bit j for axis j.
        counters: int64 [5], see `POSITIONS` and the next.
        words: int64 [W], keys one after the other.
        entries: int64 [C, 10], positions, see `START` and the next.
        slots: int32 [S], S a power of two: positions by hash, -1 in free ones.
        answers: int32 [B]: the number of projections of a position, and these, by axis; and for
            each set of its moves the set (-1 - set while its answers are not generated), a lower
            bound of its cost, the sum of the bounds of its answers, and these.
        stack: int64 [K, 2], positions and the limits that they are asked about.
    """

    goal: Goal
    cut: Any
    sets: Any
    counters: Any
    words: Any
    entries: Any
    slots: Any
    answers: Any
    stack: Any


_at_least = inlined(Goal.at_least)


@inlined
def _find(table, room, size, left, hashed):
    """The number of the position whose key is in ``room``, or -1 - (the free slot for it)."""
    mask = table.slots.shape[0] - 1
    slot = hashed & mask
    while table.slots[slot] >= 0:
        number = np.int64(table.slots[slot])
        at, length = table.entries[number, START], size * room.columns.shape[0]
        if (
            table.entries[number, HASH] == hashed
            and table.entries[number, SIZE] == size
            and table.entries[number, LEFT] == left
            and compare(table.words[at : at + length], room.words[KEY], length) == 0
        ):
            return number
        slot = (slot + 1) & mask
    return -1 - slot


@inlined
def position_of(table, room, rows, size, left):
    """The number of a position, which is added if it is new; there must be room.

    The rows are changed. The number is -1 if a coordinate is too large.
    """
    if size == 1:
        return np.int64(0)
    largest = reduce(rows, size)
    if largest > LARGEST:
        return np.int64(-1)
    if size > 2 and largest <= WIDEST:
        kept = drop_covered(room, rows, size)
        if kept < size:
            size = kept
            reduce(rows, size)
    canonical_key(room, rows, size)
    length = size * rows.shape[1]
    hashed = hash_of(room.words[KEY], length, left + 1)
    number = _find(table, room, size, left, hashed)
    if number >= 0:
        return number
    slot = -1 - number
    number = table.counters[POSITIONS]
    table.slots[slot] = number
    at = table.counters[WORDS]
    for k in range(length):
        table.words[at + k] = room.words[KEY][k]
    table.entries[number, START] = at
    table.entries[number, SIZE] = size
    table.entries[number, LEFT] = left
    table.entries[number, HASH] = hashed
    table.entries[number, SHADOWS] = table.entries[number, MOVES] = -1
    active = 0
    for j in range(rows.shape[1]):
        active += room.columns[j, size - 1] > 0
    moves, table.entries[number, TOTAL] = moves_of(room, rows, size, table.goal.by_sum)
    lower, upper = _at_least(table.goal, moves), NO_TREE
    if left >= 0 and moves_of(room, rows, size, left < 0)[0] > left:
        # Not to be resolved within what remains.
        lower = lower if table.cut[0] else NO_TREE
        upper = lower
    elif active == 2:
        upper = lower
    table.entries[number, LOWER], table.entries[number, UPPER] = lower, upper
    table.counters[POSITIONS] += 1
    table.counters[WORDS] += length
    return number


def positions_of_step(dimension):
    """The most positions that one step adds: answers, and projections of each and of itself."""
    return dimension * (dimension + 2)


_positions_of_step = inlined(positions_of_step)


@inlined
def has_room(table, room, size):
    """Whether there is room for all that one step makes of a position."""
    dimension, num_sets = room.columns.shape[0], table.sets.shape[0]
    new, counters = _positions_of_step(dimension), table.counters
    return (
        counters[WORDS] + new * size * dimension <= table.words.shape[0]
        and counters[POSITIONS] + new <= table.entries.shape[0]
        and counters[ANSWERS] + num_sets * (dimension + 3) + 2 * new <= table.answers.shape[0]
        and 2 * (counters[POSITIONS] + new) <= table.slots.shape[0]
    )


@inlined
def play(room, size, axes, axis):
    """The position after a move from `HERE`, to `THERE`; its size, or -1 if it is too large."""
    here, there = room.rows[HERE], room.rows[THERE]
    copy(here, size, there)
    kept = play_move(
        room.axes[ORDER], there, size, axes, axis, True, room.words[LIST], room.words[TRIAL]
    )
    for p in range(kept):
        if there[p, axis] > LARGEST:
            return -1
    return kept


@inlined
def _take(table, room, number):
    """Unpacks a position to `HERE`; its size and the axes that are not 0 throughout, as bits."""
    size, here = table.entries[number, SIZE], room.rows[HERE]
    unpack(table.words, table.entries[number, START], size, here)
    active = 0
    for j in range(here.shape[1]):
        for p in range(size):
            if here[p, j] > 0:
                active |= 1 << j
                break
    return size, active


@inlined
def take_shadows(table, room, number):
    """Raises a bound to those of the projections, generating these if need be; whether it rose."""
    entries, answers = table.entries, table.answers
    if entries[number, SHADOWS] < 0:
        _add_shadows(table, room, number)
    first, before = entries[number, SHADOWS], entries[number, LOWER]
    lower, total = before, np.int64(0)
    for k in range(first + 1, first + 1 + answers[first]):
        if answers[k] > 0:
            bound = entries[answers[k], LOWER]
            lower, total = max(lower, bound), total + bound
    if answers[first] > 0:
        entries[number, LOWER], entries[number, TOTAL] = lower, total
    return lower > before


@inlined
def _add_shadows(table, room, number):
    answers = table.answers
    size, active = _take(table, room, number)
    table.entries[number, SHADOWS] = first = table.counters[ANSWERS]
    left, dimension = table.entries[number, LEFT], room.columns.shape[0]
    answers[first] = dimension if ones(active) > 3 else 0
    table.counters[ANSWERS] += 1 + answers[first]
    for axis in range(answers[first]):
        # The sum over no axis, that is 0.
        answers[first + 1 + axis] = 0
        if (active >> axis) & 1:
            kept = play(room, size, 0, axis)
            answers[first + 1 + axis] = position_of(table, room, room.rows[THERE], kept, left)


@inlined
def ones(axes):
    """How many axes a set has."""
    number = 0
    while axes:
        axes &= axes - 1
        number += 1
    return number


@inlined
def add_moves(table, room, number):
    """Generates the sets of a position, with bounds for their costs; False if one is too large."""
    answers, goal = table.answers, table.goal
    size, active = _take(table, room, number)
    here = room.rows[HERE]
    moves_of(room, here, size, goal.by_sum)
    table.entries[number, MOVES] = at = table.counters[ANSWERS]
    for s in range(table.sets.shape[0]):
        axes = table.sets[s]
        if axes & ~active:
            # An axis that is 0 throughout helps nobody but the agent.
            continue
        if not add_up(room, here, size, axes, goal.by_sum):
            return False
        most, total, place = 0, 0, at + 3
        for axis in range(room.columns.shape[0]):
            if (axes >> axis) & 1:
                bound = _at_least(goal, moves_after(room, here, size, axis))
                most, total = max(most, bound), total + bound
                place += 1
        answers[at] = -s - 1
        answers[at + 1] = goal.move + (total if goal.by_sum else most)
        answers[at + 2] = total
        at = place
    table.entries[number, END] = table.counters[ANSWERS] = at
    table.counters[EXPANDED] += 1
    return True


@inlined
def add_answers(table, room, number, at):
    """Generates the answers to a set of a position."""
    answers = table.answers
    left = table.entries[number, LEFT]
    axes = table.sets[-answers[at] - 1]
    size = _take(table, room, number)[0]
    answers[at] = -answers[at] - 1
    place = at + 3
    for axis in range(room.columns.shape[0]):
        if (axes >> axis) & 1:
            # As when the sets were generated: none is too large.
            kept = play(room, size, axes, axis)
            after = left - 1 if left > 0 else -1
            answer = position_of(table, room, room.rows[THERE], kept, after)
            if answer == number:
                # It leads back here and is of no use.
                answers[at], answers[at + 1] = -answers[at] - 1, NO_TREE
                break
            answers[place] = answer
            place += 1


@inlined
def costs_of(entries, goal, answers, begin, count):
    """Proved bounds of the cost of a set, by its answers, and the sum of their lower bounds."""
    low = high = goal.move
    total = 0
    for k in range(begin, begin + count):
        below, above = entries[answers[k], LOWER], entries[answers[k], UPPER]
        total += below
        low = low + below if goal.by_sum else max(low, goal.move + below)
        high = high + above if goal.by_sum else max(high, goal.move + above)
    return min(low, NO_TREE), min(high, NO_TREE), total


@inlined
def open_answer(entries, goal, answers, begin, count, limit):
    """The answer to look at next, and the limit to ask it about; -1 if there is none.

    The answer that looks worst is the likeliest to show that the set is no good. In sums each
    answer has to be found out exactly, so it is asked for its lower bound.
    """
    chosen, most, most_total = np.int64(-1), np.int64(-1), np.int64(-1)
    for k in range(begin, begin + count):
        answer = np.int64(answers[k])
        below, above, total = entries[answer, LOWER], entries[answer, UPPER], entries[answer, TOTAL]
        if below < most or (below == most and total <= most_total):
            continue
        if above > below if goal.by_sum else above >= limit:
            chosen, most, most_total = answer, below, total
    return chosen, most if goal.by_sum else limit - 1


@compiled
def rehash(slots, entries, positions):
    """Fills empty slots with the numbers of all positions but that of the finished ones."""
    mask = slots.shape[0] - 1
    for number in range(1, positions):
        slot = entries[number, HASH] & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = number
