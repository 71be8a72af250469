"""The batched players in lock-step with plain-integer ones; those that draw are uniform."""

import random
from itertools import product

import pytest
import torch

from resgym.game.rng import RowRandom, Stream
from resgym.game.rules import random_starts
from resgym.game.spec import GameSpec, action_axes, host_action_table
from resgym.game.state import state_from_points
from resgym.players import make_agent, make_host
from tests.reference import players as reference
from tests.reference.rule import canonical
from tests.resgym.game.point_families import FAMILIES, sample

DIMENSIONS = dict.fromkeys(reference.HOSTS, (2, 3, 4, 5, 6))
DIMENSIONS |= dict.fromkeys(("zeillinger", "zeillinger_lex"), (2, 3, 4, 5, 6, 8, 10))


def sample_positions(kind, dimension, number, seed):
    """Pruned positions of up to 20 drawn points, the first a single one."""
    source = random.Random(f"{kind} {dimension} {seed}")
    drawn = [sample(source, kind, dimension, 20) for _ in range(number)]
    return [canonical(points) for points in [drawn[0][:1], *drawn[1:]]]


# Spivakovsky's host takes different quotients for equal that agree in nearly all digits.
PAIRS = [*product(reference.HOSTS, FAMILIES)]
for fragile in ("few_values", "stretched"):
    PAIRS.remove(("spivakovsky", fragile))


@pytest.mark.parametrize("number", [40, pytest.param(3000, marks=pytest.mark.long)])
@pytest.mark.parametrize(("name", "kind"), PAIRS)
def test_hosts_answer_as_the_reference(name, kind, number):
    for dimension in DIMENSIONS[name]:
        games = sample_positions(kind, dimension, number, seed=1)
        state = state_from_points(games, GameSpec(dimension=dimension))
        actions = make_host(name).act(state, None, RowRandom(torch.arange(number))).tolist()
        expected = [reference.HOSTS[name](game) for game in games]
        assert [action_axes(dimension)[each] for each in actions] == expected, f"d={dimension}"


@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize(
    ("name", "polytope"),
    [*((name, "dominance") for name in reference.AGENTS), ("greedy_points", "newton")],
)
def test_agents_answer_as_the_reference(name, kind, polytope):
    for dimension in (2, 3, 4):
        number = 12 if polytope == "newton" else 40  # vertices in fractions take their time
        games = sample_positions(kind, dimension, number, seed=3)
        spec = GameSpec(dimension=dimension, polytope=polytope)
        state = state_from_points(games, spec)
        rng = RowRandom(torch.arange(len(games)))
        actions = make_host("random").act(state, None, rng)
        greedy = name == "greedy_points"
        agent = make_agent(name, **({"spec": spec} if greedy else {}))
        answer = agent.act(state, host_action_table(dimension)[actions], rng.split(1)).tolist()
        options = {"polytope": polytope} if greedy else {}
        for game, action, axis in zip(state.point_lists(), actions.tolist(), answer, strict=True):
            axes = action_axes(dimension)[action]
            assert axis == reference.AGENTS[name](game, axes, **options), f"d={dimension}"


NUM_GAMES = 20_000
ROW = torch.arange(NUM_GAMES)
RNG = RowRandom.for_episode(ROW, ROW * 0).at(ROW * 0, Stream.HOST)


def _assert_uniform(counts):
    """Pearson's statistic is below its mean plus six standard deviations."""
    expected = counts.sum() / len(counts)
    statistic = float(((counts - expected) ** 2 / expected).sum())
    freedom = len(counts) - 1
    assert statistic < freedom + 6 * (2 * freedom) ** 0.5 + 6, counts.tolist()


@pytest.mark.parametrize("dimension", [2, 4])
@pytest.mark.parametrize("name", ["random", "random_pair"])
def test_random_hosts_are_uniform_over_their_sets(name, dimension):
    state = random_starts(GameSpec(dimension=dimension, max_num_points=3), RNG.split(1))
    sets = action_axes(dimension)
    counts = make_host(name).act(state, None, RNG).bincount(minlength=len(sets))
    assert len(counts) == len(sets)
    allowed = torch.tensor([name == "random" or len(axes) == 2 for axes in sets])
    assert int(counts[~allowed].sum()) == 0
    _assert_uniform(counts[allowed])


def test_random_agent_is_uniform_over_the_hosts_set():
    state = random_starts(GameSpec(max_num_points=3), RNG.split(1))
    for axes in host_action_table(3)[::3]:
        answers = make_agent("random").act(state, axes.expand(NUM_GAMES, 3), RNG)
        counts = answers.bincount(minlength=3)
        assert int(counts[~axes].sum()) == 0
        _assert_uniform(counts[axes])
