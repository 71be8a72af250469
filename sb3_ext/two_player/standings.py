"""Versions of players, their results against each other, and their ratings.

Nothing here reads a file or draws a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from sb3_ext.two_player.hironaka import ROLES

SCALE = 400.0 / np.log(10.0)
"""Elo points of a factor e in the odds."""


@dataclass
class Version:
    """A policy at the end of a round.

    Attributes:
        role: its seat.
        member: the member that trained it.
        round: counted from 1.
        met: versions of the other role that were drawn for its games in this round.
        elo: rating; the mean rating of the first round is 0.
        present: whether its folder still exists.
    """

    role: str
    member: int
    round: int
    met: list[str]
    elo: float = 0.0
    present: bool = True


@dataclass
class Standings:
    """All versions so far and their results.

    Attributes:
        versions: by name, such as `host-000012`, the oldest first.
        scores: of each version against those of the other role that it met, in 0..1, also of and
            against deleted ones; the two of a pair add up to 1.
    """

    versions: dict[str, Version] = field(default_factory=dict)
    scores: dict[str, dict[str, float]] = field(default_factory=dict)

    def add(self, name: str, version: Version) -> None:
        """Enters a version."""
        self.versions[name], self.scores[name] = version, {}

    def enter(self, name: str, other: str, score: float) -> None:
        """Enters the score of a version against another one."""
        self.scores[name][other], self.scores[other][name] = score, 1.0 - score

    def present(self, role: str) -> list[str]:
        """Names of a role's versions that can be played with, the oldest first."""
        return [name for name, each in self.versions.items() if each.role == role and each.present]

    def missing(self) -> dict[str, list[str]]:
        """Pairings of present versions that were not played yet: host -> agents."""
        agents = self.present("agent")
        pairs = {host: {*agents} - self.scores[host].keys() for host in self.present("host")}
        return {host: sorted(others) for host, others in pairs.items() if others}

    def rate(self, games: int) -> None:
        """Rates all versions from all scores, each of this many games."""
        table = [
            [self.scores[name].get(other, np.nan) for other in self.versions]
            for name in self.versions
        ]
        ratings = elo_ratings(np.array(table), games)
        first = [each.round == 1 for each in self.versions.values()]
        for version, rating in zip(self.versions.values(), ratings, strict=True):
            # Rounded, so that the number of threads of the linear solver does not show.
            version.elo = round(float(rating - ratings[first].mean()), 6)

    def ranked(self, role: str) -> list[str]:
        """Names of a role's present versions, the highest Elo first; of equal ones the newest."""
        newest_first = reversed(self.present(role))
        return sorted(newest_first, key=lambda name: -self.versions[name].elo)

    def prune(self, keep: int) -> None:
        """Marks the versions that no rule keeps as deleted.

        Kept are every member's newest and best version, and of each role the ``keep`` newest and
        the ``keep`` with the highest Elo.
        """
        for role in ROLES:
            newest, best = self.present(role)[::-1], self.ranked(role)
            stay = {*newest[:keep], *best[:keep]}
            for names in (newest, best):  # the first of each member
                first: dict[int, str] = {}
                for name in names:
                    first.setdefault(self.versions[name].member, name)
                stay |= {*first.values()}
            for name in newest:
                self.versions[name].present = name in stay


def pfsp_weights(wins: Sequence[float], power: float) -> list[float]:
    """Probabilities of opponents in prioritised fictitious self-play, the hardest most likely.

    Vinyals et al. 2019, "Grandmaster level in StarCraft II": proportional to (1 - p)^power.

    Args:
        wins: probability p of beating each opponent.
        power: 0: all alike; the larger, the more the hardest count.
    """
    weights = (1.0 - np.asarray(wins, dtype=float)) ** power
    total = weights.sum()
    return (weights / total if total > 0 else np.full(len(wins), 1.0 / len(wins))).tolist()


def elo_ratings(scores: np.ndarray, games: int) -> np.ndarray:
    """The ratings that explain scores best: the maximum of Elo's likelihood, by Newton's method.

    Args:
        scores: float [N, N] in 0..1 of the rows against the columns, which add up to 1 with those
            of the columns against the rows; NaN where a pairing was not played. Every version has
            played at least once.
        games: of a pairing. Scores nearer to 0 and 1 than half a game are moved there, or ratings
            would have no bound.

    Returns:
        float [N] with mean 0.
    """
    played, edge = ~np.isnan(scores), 0.5 / games
    scores = np.clip(np.nan_to_num(scores), edge, 1.0 - edge)
    strengths = np.zeros(len(scores))
    for _ in range(1000):
        expected = 1.0 / (1.0 + np.exp(strengths - strengths[:, None]))
        gap = np.where(played, scores - expected, 0.0).sum(1)
        slope = np.where(played, expected * (1.0 - expected), 0.0)
        # A common shift changes nothing; the 1 added keeps the mean where it is.
        step = np.linalg.solve(np.diag(slope.sum(1)) - slope + 1.0, gap)
        longest = np.abs(step).max()
        strengths += step / max(1.0, longest)  # far from the maximum a full step overshoots
        if longest < 1e-10:
            break
    return SCALE * strengths
