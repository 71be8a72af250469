"""The other rules, move by move against plain Python integers, and through the environments."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import gymnasium
import pytest
import torch

import resgym
from resgym.game.rng import RowRandom
from resgym.game.rules import move, random_starts
from resgym.game.spec import GameSpec
from resgym.game.state import GameState, state_from_points
from tests.reference import variants
from tests.resgym.game.lockstep import MEMBERS, assert_same, random_points


def chosen_move(source: random.Random, reference: Any, position: Any, dimension: int) -> tuple:
    """A set and an axis; one in ten is any set of any size with any axis, mostly illegal."""
    sets = reference.sets(position)
    if not sets or source.random() < 0.1:
        axes = tuple(sorted(source.sample(range(dimension), source.randint(0, dimension))))
        return axes, source.randrange(dimension)
    axes = source.choice(sets)
    return axes, source.choice(reference.answers(position, axes))


def start_of(reference: Any, spec: GameSpec, source: random.Random, kind: int) -> Any:
    points = random_points(source, spec, kind)
    if isinstance(reference, variants.Polyhedra):
        return reference.start(points)
    weights = tuple(source.randint(0, 4) for _ in range(spec.dimension))
    return reference.start(points, weights, source.choice(points))


def state_of(spec: GameSpec, positions: Sequence[Any]) -> GameState:
    """The positions as the package has them."""
    if spec.rule == "polyhedra":
        return state_from_points([list(each) for each in positions], spec)
    games = [[p for p in each.points if p != each.distinguished] for each in positions]
    for game, each in zip(games, positions, strict=True):
        # A point above all others stands for a distinguished one that was lost.
        highest = tuple(min(max(column) + 1, 2**59) for column in zip(*each.points, strict=True))
        game.append(each.distinguished or highest)
    return state_from_points(games, spec, weights=[each.weights for each in positions])


def play(
    spec: GameSpec,
    reference: Any,
    source: random.Random,
    num_games: int,
    num_moves: int,
) -> Counter:
    """Plays games side by side; nothing may differ. Returns what it went through."""
    positions = [start_of(reference, spec, source, row % MEMBERS) for row in range(num_games)]
    state = state_of(spec, positions)
    tally: Counter = Counter()
    for _ in range(num_moves):
        assert_matches(state, positions, reference)
        moves = [chosen_move(source, reference, each, spec.dimension) for each in positions]
        coords = torch.tensor([[k in axes for k in range(spec.dimension)] for axes, _ in moves])
        axis = torch.tensor([each for _, each in moves])
        after, overflow = move(state, coords, axis, spec)
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


def assert_matches(state: GameState, positions: Sequence[Any], reference: Any) -> None:
    extra = state.rule.extra_rows
    points = state.points[:, : state.points.shape[1] - extra]
    assert_same(GameState(points, state.count), [reference.rows(each) for each in positions])
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


def games_of(rule: str, seed: int) -> list[tuple[GameSpec, Any]]:
    """Games of several sizes, with both ways of pruning."""
    games: list[tuple[GameSpec, Any]] = []
    for dimension, size in ((2, 6), (3, 12), (3, 20), (4, 9), (5, 7), (7, 15)):
        polytope = "newton" if dimension == 4 else "dominance"
        if rule == "polyhedra":
            unit = (1, 2, 5, 9, 20, 30)[(dimension + size + seed) % 6]
            spec = GameSpec(dimension, size, 20, polytope, rule=rule, unit=unit)
            games.append((spec, variants.Polyhedra(unit, polytope)))
        else:
            reposition = (dimension + size) % 2 == 1
            spec = GameSpec(dimension, size, 20, polytope, reposition, rule=rule)
            games.append((spec, variants.Thom(polytope, reposition)))
    return games


def play_all(rule: str, moves: int, seed: int) -> Counter:
    tally: Counter = Counter()
    while tally["moves"] < moves:
        for spec, reference in games_of(rule, seed):
            source = random.Random(f"{seed} {spec}")
            tally += play(spec, reference, source, 64, 25)
        seed += 1
    return tally


RULES = ["polyhedra", "thom"]


@pytest.mark.parametrize("rule", RULES)
def test_two_thousand_moves(rule):
    tally = play_all(rule, 2000, 0)
    assert tally["overflows"] >= 10
    assert tally["illegal"] >= 100
    assert tally["endings"] >= 50
    assert tally["asked when over"] >= 50
    assert tally["single axes"] >= 20 or rule == "thom"


@pytest.mark.long
@pytest.mark.parametrize("rule", RULES)
def test_a_hundred_thousand_moves(rule):
    assert play_all(rule, 100_000, 1)["moves"] >= 100_000


@pytest.mark.parametrize("rule", RULES)
def test_random_starts_are_unfinished(rule):
    for size, top, unit in ((5, 9, 4), (4, 3, 9), (1, 6, 3)):
        if rule != "polyhedra" and size == 1:
            continue
        spec = GameSpec(3, size, top, rule=rule, unit=unit if rule == "polyhedra" else 1)
        rng = RowRandom.for_episode(torch.arange(50), torch.zeros(50, dtype=torch.int64))
        assert not random_starts(spec, rng).finished().any()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("env_id", resgym.envs.ENV_IDS)
def test_masks_are_exactly_what_a_step_takes(rule, env_id):
    """Every action is tried in every position of some games; those masked out are refused."""
    env = gymnasium.make_vec(env_id, num_envs=4, rule=rule, max_num_points=5)
    env.reset(seed=1)
    for step in range(12):
        masks = env.unwrapped.action_masks()
        state = env.unwrapped.state_dict()
        for action in range(masks.shape[1]):
            env.unwrapped.load_state_dict(state)
            if masks[:, action].all():
                env.step(torch.full((4,), action))
                continue
            with pytest.raises(ValueError, match=f"got {action}"):
                env.step(torch.full((4,), action))
        env.unwrapped.load_state_dict(state)
        env.step(torch.tensor([int(m.nonzero()[step % int(m.sum()), 0]) for m in masks]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rule": "hauser"}, r"rule must be one of \['basic', 'polyhedra', 'thom'\], got 'hauser'"),
        ({"unit": 2}, "unit must be 1 with rule 'basic', got 2"),
        ({"rule": "polyhedra", "unit": 0}, "unit must be between 1 and 2147483646, got 0"),
        ({"rule": "polyhedra", "reposition": True}, "reposition must be False with rule 'polyhe"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        GameSpec(**options)
