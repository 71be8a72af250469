"""Ratings, weights of opponents and the rule of who stays, by hand and against a known truth."""

import math

import numpy as np
import pytest

from sb3_ext.two_player.pool import Standings, Version, elo_ratings, pfsp_weights


def test_opponents_are_met_the_more_the_harder_they_are():
    # (1 - p)^2 is 0.25, 0 and 1.
    assert pfsp_weights([0.5, 1.0, 0.0], 2.0) == pytest.approx([0.2, 0.0, 0.8])
    assert pfsp_weights([0.5, 1.0, 0.0], 1.0) == pytest.approx([1 / 3, 0.0, 2 / 3])
    assert pfsp_weights([1.0, 1.0], 2.0) == pfsp_weights([0.1, 0.8], 0.0) == [0.5, 0.5]


def test_elo_of_pairings_that_agree_is_exact_also_where_some_were_not_played():
    truth = np.array([120.0, -300.0, 40.0, 0.0, 250.0, -30.0, 90.0])
    scores = 1 / (1 + 10 ** ((truth - truth[:, None]) / 400))
    scores[:3, :3] = scores[3:, 3:] = np.nan
    for first, second in ((0, 4), (0, 5), (0, 6), (1, 3), (2, 6)):
        scores[first, second] = scores[second, first] = np.nan
    assert elo_ratings(scores, 10**6) == pytest.approx(truth - truth.mean(), abs=1e-3)


ELO = {"host": [(10, 0), (50, 90), (20, 30), (5, 40)], "agent": [(1, 2), (3, 4), (5, 6), (7, 8)]}
"""Per role, for each round, the ratings of members 0 and 1."""


def standings():
    """Four rounds of two members."""
    found = Standings()
    for number in range(4):
        for member in range(2):
            for role in ("host", "agent"):
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
def test_who_stays(keep, hosts, agents):
    found = standings()
    found.prune(keep)
    assert found.present("host") == [f"host-{number}" for number in hosts]
    assert found.present("agent") == [f"agent-{number}" for number in agents]


def test_scores_and_what_is_missing():
    found = Standings()
    for name in ("host-0", "host-1", "agent-0", "agent-1"):
        found.add(name, Version(name[:-2], int(name[-1]), 1, []))
    both = ["agent-0", "agent-1"]
    assert found.missing() == {"host-0": both, "host-1": both}
    for host, agent, score in ((0, 0, 0.25), (0, 1, 0.75), (1, 0, 1.0)):
        found.enter(f"host-{host}", f"agent-{agent}", score)
    assert found.missing() == {"host-1": ["agent-1"]}
    found.enter("host-1", "agent-1", 0.5)
    assert found.missing() == {}


def test_the_first_round_is_zero_of_the_ratings():
    found = Standings()
    for number in (1, 2):
        for role in ("host", "agent"):
            found.add(f"{role}-{number}", Version(role, 0, number, []))
    for host, agent, score in ((1, 1, 0.5), (1, 2, 0.25), (2, 1, 0.75), (2, 2, 0.5)):
        found.enter(f"host-{host}", f"agent-{agent}", score)
    found.rate(10**6)
    points = 400 * math.log10(3)
    ratings = {name: version.elo for name, version in found.versions.items()}
    expected = {"host-1": 0, "agent-1": 0, "host-2": points, "agent-2": points}
    assert ratings == pytest.approx(expected, abs=1e-3)
