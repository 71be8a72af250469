"""Ratings, weights of opponents and the rule of who stays, by hand and against a known truth."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sb3_ext.two_player.standings import Standings, Version, elo_ratings, pfsp_weights


def test_opponents_are_met_the_more_the_harder_they_are() -> None:
    # (1 - p)^2 is 0.25, 0 and 1.
    assert pfsp_weights([0.5, 1.0, 0.0], 2.0) == pytest.approx([0.2, 0.0, 0.8])
    assert pfsp_weights([0.5, 1.0, 0.0], 1.0) == pytest.approx([1 / 3, 0.0, 2 / 3])
    assert pfsp_weights([1.0, 1.0], 2.0) == pfsp_weights([0.1, 0.8], 0.0) == [0.5, 0.5]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.floats(0.1, 5))
def test_weights_are_probabilities_in_the_order_of_difficulty(
    wins: list[float], power: float
) -> None:
    weights = pfsp_weights(wins, power)
    assert sum(weights) == pytest.approx(1.0)
    ranked = [weight for _, weight in sorted(zip(wins, weights, strict=True))]
    assert all(weight >= 0 for weight in ranked)
    assert all(a >= b or a == pytest.approx(b) for a, b in pairwise(ranked))


def test_elo_of_one_pairing() -> None:
    host, agent = elo_ratings(np.array([[0.75]]), games=100)
    assert host - agent == pytest.approx(400 * math.log10(3))
    assert host == -agent
    # Won every time: as if half of one game of ten was lost.
    host, agent = elo_ratings(np.array([[1.0]]), games=10)
    assert host - agent == pytest.approx(400 * math.log10(0.95 / 0.05))


def test_elo_of_pairings_that_agree_is_exact_also_where_some_were_not_played() -> None:
    hosts, agents = np.array([120.0, -300.0, 40.0]), np.array([0.0, 250.0, -30.0, 90.0])
    scores = 1 / (1 + 10 ** ((agents - hosts[:, None]) / 400))
    scores[0, 1:] = scores[1, 0] = scores[2, 3] = np.nan
    truth = np.concatenate([hosts, agents])
    assert elo_ratings(scores, 10**6) == pytest.approx(truth - truth.mean(), abs=1e-3)


def test_elo_is_the_most_likely_one() -> None:
    """A control by another way: nothing near it explains the scores better."""
    scores = np.random.default_rng(0).uniform(0.05, 0.95, (3, 4))

    def likelihood(ratings: np.ndarray) -> float:
        expected = 1 / (1 + 10 ** ((ratings[3:] - ratings[:3, None]) / 400))
        return float((scores * np.log(expected) + (1 - scores) * np.log(1 - expected)).sum())

    found = elo_ratings(scores, 100)
    for place in range(7):
        for step in (-2.0, 2.0):
            moved = found.copy()
            moved[place] += step
            assert likelihood(moved) < likelihood(found)


ELO = {"host": [(10, 0), (50, 90), (20, 30), (5, 40)], "agent": [(1, 2), (3, 4), (5, 6), (7, 8)]}
"""Per role, for each round, the ratings of members 0 and 1."""


def standings() -> Standings:
    """Four rounds of two members."""
    found = Standings(("host", "agent"))
    for number in range(4):
        for member in range(2):
            for role in found.roles:
                name = f"{role}-{2 * number + member}"
                elo = ELO[role][number][member]
                found.add(name, Version(role, member, number + 1, [], elo))
    return found


@pytest.mark.parametrize(
    ("keep", "hosts", "agents"),
    [
        # latest 6 7, best 2 3 of the hosts; keep 1: newest 7, strongest 3
        (1, [2, 3, 6, 7], [6, 7]),
        # newest 5 6 7; strongest 3 (90), 2 (50), 7 (40)
        (3, [2, 3, 5, 6, 7], [5, 6, 7]),
        # newest 4 to 7; strongest 3, 2, 7, 5
        (4, [2, 3, 4, 5, 6, 7], [4, 5, 6, 7]),
        (8, list(range(8)), list(range(8))),
    ],
)
def test_who_stays(keep: int, hosts: list[int], agents: list[int]) -> None:
    found = standings()
    found.prune(keep)
    assert found.present("host") == [f"host-{number}" for number in hosts]
    assert found.present("agent") == [f"agent-{number}" for number in agents]


def test_of_equal_ratings_the_newest_is_best() -> None:
    found = standings()
    for version in found.versions.values():
        version.elo = 7.0
    assert found.best(found.present("host")) == "host-7"


def test_scores_fitness_and_what_is_missing() -> None:
    found = Standings(("host", "agent"))
    for name in ("host-0", "host-1", "agent-0", "agent-1"):
        found.add(name, Version(name[:-2], int(name[-1]), 1, []))
    both = ["agent-0", "agent-1"]
    assert found.missing() == {"host-0": both, "host-1": both}
    found.scores = {"host-0": {"agent-0": 0.25, "agent-1": 0.75}, "host-1": {"agent-0": 1.0}}
    assert found.missing() == {"host-1": ["agent-1"]}
    found.scores["host-1"]["agent-1"] = 0.5
    assert found.missing() == {}
    assert [found.fitness(name) for name in ("host-0", "host-1")] == [0.5, 0.75]
    assert [found.fitness(name) for name in both] == [0.375, 0.375]
    found.rate(games=100)
    ratings = [version.elo for version in found.versions.values()]
    assert np.mean(ratings) == pytest.approx(0.0, abs=1e-9)
    assert found.versions["host-1"].elo > found.versions["host-0"].elo


def test_the_first_round_is_zero_of_the_ratings() -> None:
    found = Standings(("host", "agent"))
    for number in (1, 2):
        for role in found.roles:
            found.add(f"{role}-{number}", Version(role, 0, number, []))
    found.scores = {
        "host-1": {"agent-1": 0.5, "agent-2": 0.25},
        "host-2": {"agent-1": 0.75, "agent-2": 0.5},
    }
    found.rate(10**6)
    points = 400 * math.log10(3)
    ratings = {name: version.elo for name, version in found.versions.items()}
    expected = {"host-1": 0, "agent-1": 0, "host-2": points, "agent-2": points}
    assert ratings == pytest.approx(expected, abs=1e-3)
