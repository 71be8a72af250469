"""Plays the tensor rules and those in plain Python side by side and compares every position."""

import itertools
from collections import Counter

import torch

from resgym.game.state import state_from_points
from tests.reference import rule, variants
from tests.resgym.game import splitmix
from tests.resgym.game.point_families import FAMILIES

KINDS = len(FAMILIES) + 5  # of starts: hard sets, a single point, and those of the game


def random_points(source, spec, kind):
    """A start with 1 to P points: a hard set, or points of the game's own range."""
    number = source.choice((spec.max_num_points, source.randint(1, spec.max_num_points)))
    if kind < len(FAMILIES):
        points = [*FAMILIES.values()][kind](source, spec.dimension, max(number, 2))
        return points[:number]
    top = source.choice((2, spec.max_value))
    return [
        tuple(source.randint(0, top) for _ in range(spec.dimension))
        for _ in range(1 if kind == len(FAMILIES) else number)
    ]


def random_move(source, reference, position, dimension):
    """A set and an axis; one in ten is any set of any size with any axis, mostly illegal."""
    sets = reference.sets(position)
    if not sets or source.random() < 0.1:
        axes = tuple(sorted(source.sample(range(dimension), source.randint(0, dimension))))
        return axes, source.randrange(dimension)
    axes = source.choice(sets)
    return axes, source.choice(reference.answers(position, axes))


def start_of(reference, spec, source, kind):
    points = random_points(source, spec, kind)
    if not isinstance(reference, variants.Thom):
        return reference.start(points)
    weights = tuple(source.randint(0, 4) for _ in range(spec.dimension))
    return reference.start(points, weights, source.choice(points))


def state_of(spec, positions):
    """The positions as the package has them."""
    if spec.rule != "thom":
        return state_from_points([list(each) for each in positions], spec)
    games = [[p for p in each.points if p != each.distinguished] for each in positions]
    for game, each in zip(games, positions, strict=True):
        # A point above all others stands for a distinguished one that was lost.
        highest = tuple(min(max(column) + 1, 2**59) for column in zip(*each.points, strict=True))
        game.append(each.distinguished or highest)
    return state_from_points(games, spec, weights=[each.weights for each in positions])


def play(backend, spec, reference, source, num_games, num_moves):
    """Plays up to ``num_moves`` moves in each of ``num_games`` games; nothing may differ.

    A finished game is asked for one more move and leaves. Returns what the games went through.
    """
    positions = [start_of(reference, spec, source, row % KINDS) for row in range(num_games)]
    state = state_of(spec, positions)
    tally = Counter()
    for _ in range(num_moves):
        assert_matches(state, positions, reference)
        moves = [random_move(source, reference, each, spec.dimension) for each in positions]
        coords = torch.tensor([[k in axes for k in range(spec.dimension)] for axes, _ in moves])
        axis = torch.tensor([each for _, each in moves])
        kept = state.points.clone(), state.count.clone()
        after, overflow = backend.move(state, coords, axis, spec)
        assert torch.equal(kept[0], state.points)
        assert torch.equal(kept[1], state.count)
        going = []
        for row, (axes, each) in enumerate(moves):
            position = positions[row]
            going.append(not reference.is_finished(position))
            legal = variants.is_legal(reference, position, axes, each)
            passes = legal and variants.overflows(reference, position, axes, each)
            assert bool(overflow[row]) == passes
            if legal and not passes:
                positions[row] = reference.moved(position, axes, each)
            tally["moves"] += going[-1]
            tally["illegal"] += going[-1] and not legal
            tally["overflows"] += passes
            tally["single axes"] += legal and len(axes) == 1
            tally["endings"] += going[-1] and reference.is_finished(positions[row])
            tally["asked when over"] += not going[-1]
        assert_matches(after, positions, reference)
        state = after.select(torch.tensor(going))
        positions = [each for each, keep in zip(positions, going, strict=True) if keep]
        if not positions:
            break
    return tally


def assert_matches(state, positions, reference):
    """The state is exactly these positions, in canonical layout, with the same sets."""
    extra = state.rule.extra_rows
    points = state.points[:, : state.points.shape[1] - extra]
    assert state.points.dtype == state.count.dtype == torch.int64
    assert bool((points[torch.arange(points.shape[1]) >= state.count[:, None]] == -1).all())
    assert state.point_lists() == [reference.rows(each) for each in positions]
    assert state.finished().tolist() == [reference.is_finished(each) for each in positions]
    if extra:
        lost = (-1,) * points.shape[2]
        rows = [[each.weights, each.distinguished or lost] for each in positions]
        assert state.points[:, -2:].tolist() == [[list(row) for row in pair] for pair in rows]
    legal = state.legal_sets()
    if legal is not None:
        sets = variants.subsets(points.shape[2], 1)
        for row, position in zip(legal.tolist(), positions, strict=True):
            found = [axes for axes, flag in zip(sets, row, strict=True) if flag]
            assert found == (reference.sets(position) or sets)


def reference_start(spec, key):
    """The start and how many draws it took: words of the key split by the attempt's number."""
    size = spec.dimension
    number = spec.max_num_points * spec.dimension
    for attempt in range(spec.start_attempts):
        words = itertools.islice(splitmix.words(splitmix.absorb(key, attempt)), number)
        values = [splitmix.integer(word, spec.max_value + 1) for word in words]
        drawn = [tuple(values[i : i + size]) for i in range(0, number, size)]
        points = rule.canonical(drawn, reposition=spec.reposition)
        if not rule.is_finished(points):
            return points, attempt + 1
    return [tuple(int(j == axis) for j in range(size)) for axis in (0, 1)], spec.start_attempts
