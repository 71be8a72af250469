"""The search: a table of positions with proved bounds, and the loop that raises them.

This file is read twice. Imported, it is plain Python on lists, for integers of any size and for the
first moments of a process. `resgym.solver.search.compiled` runs it again with `jit` in its globals,
on arrays of int64; so both take the same steps.

The cost of a position is ``finished`` once one point is left. Otherwise it is ``move`` more than
the largest cost after the agent's answers to the host's best set, or than their sum:

    depth:   1 + min over the host's sets of the max over the agent's axes of the next cost
    nodes:   1 + min over the host's sets of the sum over the agent's axes of the next cost
    leaves:      min over the host's sets of the sum over the agent's axes of the next cost

At first the bounds of a position are those of its projections to two axes (proof:
docs/mathematics.md, "How long a game lasts at least"). A value is found by asking whether it is at
most its lower bound, until it is. A question follows the set that looks best and asks about the
answer to it that looks worst, with a smaller limit, so positions that recur do no harm. (Iterative
deepening with a table: Korf, "Depth-first iterative-deepening", 1985; bounds raised on the way
back: Bonet and Geffner, "Learning Depth-First Search", ICAPS 2006.)

Points are flat: coordinate j of point p stands at p * D + j.
"""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable
from typing import Any

NO_TREE = 2**60 if "jit" in globals() else math.inf
"""More than any cost: of a set that leads back to its position, and of what is not known."""

jit: Callable[..., Any] = globals().get("jit", lambda function: function)

DONE, STOPPED, FULL, TOO_LARGE = range(4)
"""How a question ends: answered, its effort is spent, no room in the table, a coordinate is too
large for int64."""

POSITIONS, WORDS, ANSWERS, EXPANDED, HEIGHT = range(5)
"""Counters: what is in use, how many positions have been expanded, the height of the stack."""

_MASK = 2**62 - 1


Table = namedtuple(
    "Table",
    "finished move by_sum dimension rows largest counters sets start size hashed lower upper total "
    "shadows moves end words slots answers stack limits here there columns pairs colours order",
)
"""The table, what it is asked about, and memory to work in.

All sequences are lists, or arrays of int64. Position 0 stands for everything finished.

Attributes:
    finished, move, by_sum: the goal, see the head of this file.
    dimension: number of axes D.
    rows: the most points of a position P.
    largest: the largest coordinate of a position that is kept.
    counters: [5], see `POSITIONS` and the next.
    sets: [A] the host's sets, smaller ones first, bit j for axis j.
    start, size, hashed: [C] of each position where its points begin among the words, how many
        there are, and its hash.
    lower, upper: [C] proved bounds of the cost.
    total: [C] the sum of the bounds of its projections: which of two equally bad answers is
        worse.
    shadows, moves, end: [C] where its projections and its moves begin among the answers (-1
        while they are not generated), and where the moves end.
    words: [W] the points of all positions.
    slots: [2 C] positions by hash, -1 where free; 2 C is a power of two.
    answers: [B] of each position the number of its projections and these; of each of its moves
        the set's index (-1 - index while its answers are not generated), a lower bound of its
        cost, the sum of the bounds of its answers, and these.
    stack, limits: [K] positions and the limits that they are asked about.
    here, there: [P D] points.
    columns: [(D + 1) P] the points by axis, and their sums over a set.
    pairs: [(D + 1) D] moves of projections to two axes.
    colours, order: [D] of the axes.
"""


@jit
def edge_moves(a, b):
    """How many moves an edge (a, -b) lasts: steps of Euclid's algorithm by subtraction."""
    moves = 0
    while b > 0:
        if a < b:
            a, b = b, a
        elif a < 8 * b:
            # Most quotients are small, and divisions slow.
            a -= b
            moves += 1
        else:
            moves += a // b
            a %= b
    return moves


@jit
def shared_nodes(a, b, c, d):
    """Nodes that the ways to the slopes a / b and c / d in the Stern-Brocot tree have in common."""
    common = 1
    while True:
        if a > b and c > d:
            steps = min((a - 1) // b, (c - 1) // d)
            a, c = a - steps * b, c - steps * d
        elif a < b and c < d:
            steps = min((b - 1) // a, (d - 1) // c)
            b, d = b - steps * a, d - steps * c
        else:
            return common
        common += steps


@jit
def moves_of_polygon(columns, i, j, size, by_sum):
    """Moves on the longest branch of the only tree of a Newton polygon, or in the whole tree.

    The columns that begin at i and j are the two axes. Every compact edge lasts as long as Euclid's
    algorithm; ways to two slopes have their nodes in common up to where they part.
    """
    at = 0
    for p in range(1, size):
        if columns[i + p] <= columns[i + at] and (
            columns[i + p] < columns[i + at] or columns[j + p] < columns[j + at]
        ):
            at = p
    moves = run_before = fall_before = 0
    while True:
        # The steepest way down from this vertex, to its end.
        run, fall, following = 0, 0, at
        for p in range(size):
            down = columns[j + at] - columns[j + p]
            if down > 0:
                along = columns[i + p] - columns[i + at]
                steeper = down * run - fall * along
                if fall == 0 or steeper > 0 or (steeper == 0 and down > fall):
                    run, fall, following = along, down, p
        if fall == 0:
            return moves
        length = edge_moves(run, fall)
        if not by_sum:
            moves = max(moves, length)
        else:
            moves += length
            if fall_before > 0:
                moves -= shared_nodes(run_before, fall_before, run, fall)
        at, run_before, fall_before = following, run, fall


@jit
def moves_of_pairs(t, points, size, by_sum):
    """Moves of the projections to two axes: the most, their sum; and the active axes as bits.

    The rest is as it stays in ``columns`` and ``pairs``.
    """
    d, rows, active, most, total = t.dimension, t.rows, 0, 0, 0
    for j in range(d):
        for p in range(size):
            value = points[p * d + j]
            t.columns[j * rows + p] = value
            if value > 0:
                active |= 1 << j
        for i in range(j):
            moves = moves_of_polygon(t.columns, i * rows, j * rows, size, by_sum)
            t.pairs[j * d + i] = moves
            most, total = max(most, moves), total + moves
    return most, total, active


@jit
def reduce(points, size, d):
    """Moves points to the origin and divides by their divisor; returns the largest coordinate."""
    divisor = largest = 0
    for j in range(d):
        least = points[j]
        for k in range(d + j, size * d, d):
            if points[k] < least:
                least = points[k]
        for k in range(j, size * d, d):
            value = points[k] - least
            points[k] = value
            if value > largest:
                largest = value
            if divisor != 1:
                while value:
                    divisor, value = value, divisor % value
    if divisor > 1:
        for k in range(size * d):
            points[k] //= divisor
        largest //= divisor
    return largest


@jit
def mix(value, colour):
    """A number of 62 bits that depends on both in no simple way; wrapping changes none of it."""
    mixed = (value * 0x2545F4914F6CDD1D + colour * 0x1B03738712FAD5C9 + 0x369DEA0F31A53F85) & _MASK
    mixed = ((mixed ^ (mixed >> 31)) * 0x1C69B3F74AC4AE35) & _MASK
    return mixed ^ (mixed >> 29)


@jit
def is_below(points, one, other, d):
    """Whether the point that begins at one is <= that at other in all axes."""
    for j in range(d):  # numba has no generators  # noqa: SIM110
        if points[one + j] > points[other + j]:
            return False
    return True


@jit
def play(t, size, axes, axis):
    """Writes the position after a move from ``here`` to ``there``; returns its size.

    The sum over no axis is 0, so that with an empty set it is the projection along the axis.
    """
    d, here, there, kept = t.dimension, t.here, t.there, 0
    for p in range(size):
        total = 0
        for j in range(d):
            there[kept * d + j] = here[p * d + j]
            if (axes >> j) & 1:
                total += here[p * d + j]
        there[kept * d + axis] = total
        covered = False
        for q in range(kept):
            if is_below(there, q * d, kept * d, d):
                covered = True
                break
        if covered:
            continue
        last, kept = kept, 0
        for q in range(last + 1):
            if q == last or not is_below(there, last * d, q * d, d):
                for j in range(d):
                    there[kept * d + j] = there[q * d + j]
                kept += 1
    return kept


@jit
def write_form(t, size):
    """Writes ``there``, reduced, behind the words in use, in one order of axes and points.

    Axes are ordered by colours, which come from the points' values and from what else is in the
    points. Axes with equal colours can nearly always be exchanged; where they cannot, one position
    has two forms, which costs time and is never wrong.
    """
    d, there, colours, order, words = t.dimension, t.there, t.colours, t.order, t.words
    for j in range(d):
        colours[j] = 0
    for p in range(size):
        colour = 0
        for j in range(d):
            colour += mix(there[p * d + j], 0)
        for j in range(d):
            colours[j] = (colours[j] + mix(there[p * d + j], colour)) & _MASK
    for j in range(d):
        place = j
        while place > 0 and colours[order[place - 1]] > colours[j]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = j
    begin = t.counters[WORDS]
    for p in range(size):
        at = begin + p * d
        for j in range(d):
            words[at + j] = there[p * d + order[j]]
        while at > begin:
            j = 0
            while j < d - 1 and words[at + j] == words[at - d + j]:
                j += 1
            if words[at + j] > words[at - d + j]:
                break
            for k in range(at, at + d):
                words[k], words[k - d] = words[k - d], words[k]
            at -= d


@jit
def enter(t, size):
    """The number of the position in ``there``, which is added if it is new; -1 if too large."""
    d, words, there = t.dimension, t.words, t.there
    if size == 1:
        return 0
    if reduce(there, size, d) > t.largest:
        return -1
    write_form(t, size)
    begin, length = t.counters[WORDS], size * d
    hashed = 0
    for k in range(length):
        hashed = ((hashed ^ words[begin + k]) * 0x2545F4914F6CDD1D) & _MASK
    hashed = mix(hashed, length)
    mask = len(t.slots) - 1
    slot = hashed & mask
    while t.slots[slot] >= 0:
        number = t.slots[slot]
        if t.hashed[number] == hashed and t.size[number] == size:
            # Equal hashes do no harm: the points are compared.
            at, k = t.start[number], 0
            while k < length and words[at + k] == words[begin + k]:
                k += 1
            if k == length:
                return number
        slot = (slot + 1) & mask
    number = t.counters[POSITIONS]
    t.slots[slot] = number
    t.start[number], t.size[number], t.hashed[number] = begin, size, hashed
    t.shadows[number] = t.moves[number] = -1
    most, t.total[number], active = moves_of_pairs(t, there, size, t.by_sum)
    lower, upper = t.finished + max(most, 1) * (t.move + t.finished), NO_TREE
    if ones(active) == 2:
        # With two axes alone the projection is the position.
        upper = lower
    t.lower[number], t.upper[number] = lower, upper
    t.counters[POSITIONS] += 1
    t.counters[WORDS] += length
    return number


@jit
def has_room(t, size):
    """Whether there is room for all that one step makes of a position of this many points."""
    d, new = t.dimension, t.dimension * (t.dimension + 2)
    return (
        t.counters[POSITIONS] + new <= len(t.lower)
        and t.counters[WORDS] + (new + 1) * size * d <= len(t.words)
        and t.counters[ANSWERS] + len(t.sets) * (d + 3) + 2 * new <= len(t.answers)
    )


@jit
def unpack(t, number):
    """Writes a position to ``here``; returns its size."""
    size, start = t.size[number], t.start[number]
    for k in range(size * t.dimension):
        t.here[k] = t.words[start + k]
    return size


@jit
def take_shadows(t, number):
    """Raises a bound to those of the projections, generating these if need be; whether it rose."""
    answers, d = t.answers, t.dimension
    if d < 4:
        return False
    if t.shadows[number] < 0:
        size = unpack(t, number)
        active = moves_of_pairs(t, t.here, size, False)[2]
        at = t.counters[ANSWERS]
        t.shadows[number] = at
        answers[at] = 0
        if ones(active) > 3:
            answers[at] = d
            for axis in range(d):
                answers[at + 1 + axis] = 0
                if (active >> axis) & 1:
                    answers[at + 1 + axis] = enter(t, play(t, size, 0, axis))
        t.counters[ANSWERS] += 1 + answers[at]
    at, before, lower, total = t.shadows[number], t.lower[number], t.lower[number], 0
    if answers[at] == 0:
        return False
    for k in range(at + 1, at + 1 + answers[at]):
        if answers[k] > 0:
            lower, total = max(lower, t.lower[answers[k]]), total + t.lower[answers[k]]
    t.lower[number], t.total[number] = lower, total
    return lower > before


@jit
def ones(axes):
    """How many axes a set has."""
    number = 0
    while axes:
        axes &= axes - 1
        number += 1
    return number


@jit
def add_moves(t, number):
    """Generates the sets of a position, with bounds of their costs but without the answers."""
    answers, columns, d, rows = t.answers, t.columns, t.dimension, t.rows
    size = unpack(t, number)
    active = moves_of_pairs(t, t.here, size, t.by_sum)[2]
    t.moves[number] = at = t.counters[ANSWERS]
    for index in range(len(t.sets)):
        axes = t.sets[index]
        if axes & ~active:
            # An axis on which all points are equal helps only the agent.
            continue
        for p in range(size):
            total = 0
            for j in range(d):
                if (axes >> j) & 1:
                    total += columns[j * rows + p]
            columns[d * rows + p] = total
        for j in range(d):
            t.pairs[d * d + j] = moves_of_polygon(columns, j * rows, d * rows, size, t.by_sum)
        most, total, place = 0, 0, at + 3
        for axis in range(d):
            if (axes >> axis) & 1:
                moves = 0
                for i in range(d + 1):
                    for j in range(min(i, d)):
                        if i != axis and j != axis:
                            moves = max(moves, t.pairs[i * d + j])
                if moves == 0 and not is_finished(t, size, axis):
                    moves = 1
                bound = t.finished + moves * (t.move + t.finished)
                most, total = max(most, bound), total + bound
                place += 1
        answers[at] = -1 - index
        answers[at + 1] = t.move + (total if t.by_sum else most)
        answers[at + 2] = total
        at = place
    t.end[number] = t.counters[ANSWERS] = at
    t.counters[EXPANDED] += 1


@jit
def is_finished(t, size, axis):
    """Whether one point is least on all axes once the sums take the place of an axis."""
    least = 0
    for p in range(1, size):
        below = True
        for j in range(t.dimension + 1):
            at = j * t.rows
            if j != axis and t.columns[at + p] > t.columns[at + least]:
                below = False
        if below:
            least = p
    for j in range(t.dimension + 1):
        for p in range(size):
            if j != axis and t.columns[j * t.rows + p] < t.columns[j * t.rows + least]:
                return False
    return True


@jit
def add_answers(t, number, at):
    """Generates the answers to a set of a position; False if a coordinate is too large."""
    index = -1 - t.answers[at]
    axes, place, size = t.sets[index], at + 3, unpack(t, number)
    for axis in range(t.dimension):
        if (axes >> axis) & 1:
            answer = enter(t, play(t, size, axes, axis))
            if answer < 0:
                return False
            if answer == number:
                # It leads back here and is of no use.
                t.answers[at + 1] = NO_TREE
                return True
            t.answers[place] = answer
            place += 1
    t.answers[at] = index
    return True


@jit
def costs(t, at, count):
    """Proved bounds of the cost of a set, by its answers, and the sum of their lower bounds."""
    low = high = t.move
    total = 0
    for k in range(at, at + count):
        below, above = t.lower[t.answers[k]], t.upper[t.answers[k]]
        total += below
        low = low + below if t.by_sum else max(low, t.move + below)
        high = high + above if t.by_sum else max(high, t.move + above)
    return min(low, NO_TREE), min(high, NO_TREE), min(total, NO_TREE)


@jit
def next_question(t, top, limit, effort):
    """What has to be asked to answer a question: a position and a limit, or (-1, status).

    -1 and `DONE` if the bounds answer the question itself, or have changed.
    """
    answers, lower = t.answers, t.lower
    take_shadows(t, top)
    # An answer along an axis leaves the projection as it is, so the projection must be good for a
    # move less if the set may have this axis.
    fewer, shut, at = int(not t.by_sum), 0, t.shadows[top]
    for axis in range(answers[at] if at >= 0 else 0):
        shadow = answers[at + 1 + axis]
        aim = max(limit - fewer, lower[shadow])
        if aim <= limit and aim < t.upper[shadow] and lower[top] <= limit:
            return shadow, aim
        if fewer and aim >= limit:
            shut |= 1 << axis
    if lower[top] > limit:
        return -1, DONE
    if t.moves[top] < 0:
        if effort[0] <= 0:
            return -1, STOPPED
        add_moves(t, top)
        effort[0] -= 1
        effort[1] -= 10
    least, best, best_rank, at = NO_TREE, -1, NO_TREE, t.moves[top]
    while at < t.end[top]:
        axes = t.sets[max(answers[at], -1 - answers[at])]
        count = ones(axes)
        if axes & shut:
            answers[at + 1] = max(answers[at + 1], limit + 1)
        low = answers[at + 1]
        least = min(least, low)
        if low <= limit:
            # For the depth what is begun goes first, then the least bounds on average. 2520 is
            # divided by every number up to ten.
            rank = answers[at + 2]
            if not t.by_sum:
                rank = rank * 2520 // count + (2**50 if answers[at] < 0 else 0)
            if rank < best_rank:
                best, best_rank = at, rank
        at += 3 + count
    lower[top] = max(lower[top], least)
    if lower[top] > limit:
        return -1, DONE
    if answers[best] < 0:
        if not add_answers(t, top, best):
            return -1, TOO_LARGE
        if answers[best] < 0:
            return -1, DONE
    # What is written of a set is true, but may be old.
    count = ones(t.sets[answers[best]])
    for k in range(best + 3, best + 3 + count):
        if answers[k] > 0:
            take_shadows(t, answers[k])
    low, high, total = costs(t, best + 3, count)
    t.upper[top] = min(t.upper[top], high)
    if high <= limit:
        return -1, DONE
    if low <= answers[best + 1]:
        answers[best + 2] = total
        return open_answer(t, best + 3, count, limit)
    # It looks worse now. One set a step, so that there is room for what it adds.
    answers[best + 1], answers[best + 2] = low, total
    return -1, DONE


@jit
def open_answer(t, at, count, limit):
    """The answer to ask about next, and the limit to ask it about.

    The answer that looks worst is the likeliest to show that the set is bad. In sums each
    answer has to be found out exactly, so it is asked for its lower bound.
    """
    chosen, most, most_total = -1, -1, -1
    for k in range(at, at + count):
        answer = t.answers[k]
        below, above, total = t.lower[answer], t.upper[answer], t.total[answer]
        if below < most or (below == most and total <= most_total):
            continue
        if above > below if t.by_sum else above >= limit:
            chosen, most, most_total = answer, below, total
    return chosen, most if t.by_sum else limit - 1


# The rest is what is called from outside.


def decide(t, root, limit, effort):
    """Finds out whether the cost of a position is at most a limit; returns how it ended.

    A question that was stopped continues where it was, so it takes the same steps in one piece or
    in many. What may be spent is counted down in ``effort`` [2], expansions and steps; an expansion
    takes ten steps more.
    """
    height, status = t.counters[HEIGHT], DONE
    if height == 0 or t.stack[0] != root or t.limits[0] != limit:
        height = 1
        t.stack[0], t.limits[0] = root, limit
    while height > 0 and status == DONE:
        top, limit = t.stack[height - 1], t.limits[height - 1]
        if t.lower[top] > limit or t.upper[top] <= limit:
            height -= 1
        elif effort[1] <= 0:
            status = STOPPED
        elif height == len(t.stack) or not has_room(t, t.size[top]):
            status = FULL
        else:
            effort[1] -= 1
            asked, aim = next_question(t, top, limit, effort)
            if asked < 0:
                status = aim
            else:
                t.stack[height], t.limits[height] = asked, aim
                height += 1
    t.counters[HEIGHT] = height
    return status


def answers_to(t, size, axes, numbers):
    """Writes the numbers of the positions after a set from ``here``, one for each of its axes.

    With the empty set it is the number of ``here`` itself; -1 where a coordinate is too large.

    Returns:
        whether there was room.
    """
    if not has_room(t, size):
        return False
    count = 0
    for axis in range(t.dimension):
        if (axes >> axis) & 1:
            numbers[count] = enter(t, play(t, size, axes, axis))
            count += 1
    if axes == 0:
        for k in range(size * t.dimension):
            t.there[k] = t.here[k]
        numbers[0] = enter(t, size)
    return True


def rehash(t):
    """Fills empty slots with all positions but that of the finished ones."""
    mask = len(t.slots) - 1
    for number in range(1, t.counters[POSITIONS]):
        slot = t.hashed[number] & mask
        while t.slots[slot] >= 0:
            slot = (slot + 1) & mask
        t.slots[slot] = number
