"""The league: versions of both roles, what they scored against each other, who stays.

Nothing here reads a file or draws a number. A version is named by its role and a number that
follows from its round and its member, `host-000012`. A pay-off is the first role's score in 0..1
against the second's, as `Game.match` gives it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

SCALE = 400.0 / np.log(10.0)
"""Elo points of a factor e in the odds."""


@dataclass
class Version:
    """A policy as it was at the end of a round.

    Attributes:
        role: its seat.
        member: who trained it.
        round: when, from 1.
        hyperparameters: with which values.
        elo: rating; the mean of those of the first round is 0.
        present: whether it is in the league's folder still.
    """

    role: str
    member: int
    round: int
    hyperparameters: dict[str, int | float]
    elo: float = 0.0
    present: bool = True


@dataclass
class League:
    """All versions there have been.

    Attributes:
        roles: the two roles, the first is who pay-offs count for.
        versions: by name, in the order in which they came.
        payoffs: of the first role's versions against the second's, also of those that are gone.
    """

    roles: tuple[str, str]
    versions: dict[str, Version] = field(default_factory=dict)
    payoffs: dict[str, dict[str, float]] = field(default_factory=dict)

    def add(self, name: str, version: Version) -> None:
        """Enters a version."""
        self.versions[name] = version
        if version.role == self.roles[0]:
            self.payoffs[name] = {}

    def present(self, role: str) -> list[str]:
        """Names of a role's versions that can be played with, the oldest first."""
        return [name for name, each in self.versions.items() if each.role == role and each.present]

    def missing(self) -> dict[str, list[str]]:
        """The pairings of those present that were not played yet: first role -> second role."""
        second = self.present(self.roles[1])
        pairs = {
            name: [other for other in second if other not in self.payoffs[name]]
            for name in self.present(self.roles[0])
        }
        return {name: others for name, others in pairs.items() if others}

    def score(self, name: str, other: str) -> float:
        """What a version of either role scored against one of the other role."""
        if self.versions[name].role == self.roles[0]:
            return self.payoffs[name][other]
        return 1.0 - self.payoffs[other][name]

    def fitness(self, name: str) -> float:
        """A version's mean score against all present ones of the other role."""
        others = self.present(self.roles[self.versions[name].role == self.roles[0]])
        return float(np.mean([self.score(name, other) for other in others]))

    def weights(self, name: str, others: Sequence[str], power: float | None) -> list[float]:
        """With which weight a version meets each of these, see `pfsp_weights`; None: all alike."""
        if power is None:
            return [1.0 / len(others)] * len(others)
        return pfsp_weights([self.score(name, other) for other in others], power)

    def rate(self, games: int) -> None:
        """Rates all versions anew from all pay-offs of so many games each."""
        first, second = (
            [name for name, each in self.versions.items() if each.role == role]
            for role in self.roles
        )
        table = [[self.payoffs[name].get(other, np.nan) for other in second] for name in first]
        ratings = dict(zip(first + second, elo_ratings(np.array(table), games), strict=True))
        zero = np.mean([ratings[name] for name in ratings if self.versions[name].round == 1])
        for name, rating in ratings.items():
            # Rounded: how many threads the equations are solved with must not show.
            self.versions[name].elo = round(float(rating - zero), 6)

    def tags(self) -> dict[str, dict[str, list[str]]]:
        """For each role the `latest` and the `best` version of every member, by its number.

        The best has the highest Elo of those present, of equal ones the newest.
        """
        found: dict[str, dict[str, list[str]]] = {}
        for role in self.roles:
            of_member: dict[int, list[str]] = {}
            for name in self.present(role):
                of_member.setdefault(self.versions[name].member, []).append(name)
            members = [of_member[number] for number in sorted(of_member)]
            found[role] = {
                "latest": [names[-1] for names in members],
                "best": [self.strongest(names) for names in members],
            }
        return found

    def strongest(self, names: Iterable[str]) -> str:
        """Who of these has the highest Elo; of equal ones the newest."""
        ranked = {name: place for place, name in enumerate(self.versions)}
        return max(names, key=lambda name: (self.versions[name].elo, ranked[name]))

    def collect(self, keep: int) -> list[str]:
        """Takes out whom no rule keeps, and names them.

        There stay every member's latest and best, the newest ``keep`` of a role and the ``keep``
        with the highest Elo.
        """
        removed = []
        tags = self.tags()
        for role in self.roles:
            names = self.present(role)
            stay = {*tags[role]["latest"], *tags[role]["best"], *names[-keep:]}
            stay |= set(sorted(names, key=lambda name: -self.versions[name].elo)[:keep])
            removed += [name for name in names if name not in stay]
        for name in removed:
            self.versions[name].present = False
        return removed

    def to_dict(self) -> dict[str, Any]:
        """Plain data, with the tags."""
        versions = {name: asdict(version) for name, version in self.versions.items()}
        return {"tags": self.tags(), "versions": versions, "payoffs": self.payoffs}

    @classmethod
    def from_dict(cls, roles: tuple[str, str], data: Mapping[str, Any]) -> League:
        """What `to_dict` gave."""
        versions = {name: Version(**each) for name, each in data["versions"].items()}
        return cls(roles, versions, dict(data["payoffs"]))


def pfsp_weights(wins: Sequence[float], power: float) -> list[float]:
    """Probabilities of opponents in prioritised fictitious self-play, the hardest most likely.

    Vinyals et al. 2019, "Grandmaster level in StarCraft II": proportional to (1 - p)^power.

    Args:
        wins: probability p of beating each opponent.
        power: above 0; the larger, the more the hardest count.
    """
    weights = (1.0 - np.asarray(wins, dtype=float)) ** power
    total = weights.sum()
    # Where all are beaten for certain, all are as good.
    return (weights / total if total > 0 else np.full(len(wins), 1.0 / len(wins))).tolist()


def elo_ratings(scores: np.ndarray, games: int) -> np.ndarray:
    """The ratings that explain scores best: the maximum of Elo's likelihood, by Newton's method.

    Args:
        scores: float [H, A] in 0..1 of the rows against the columns; not a number where a pairing
            was not played. Every version has played somebody.
        games: of a pairing. Scores nearer to 0 and 1 than half a game are moved there, or ratings
            would have no bound.

    Returns:
        float [H + A] with mean 0, the rows first.
    """
    played, edge = ~np.isnan(scores), 0.5 / games
    scores = np.clip(np.nan_to_num(scores), edge, 1.0 - edge)
    strengths = np.zeros(sum(scores.shape))
    for _ in range(1000):
        first, second = np.split(strengths, [len(scores)])
        expected = 1.0 / (1.0 + np.exp(second - first[:, None]))
        gap = np.where(played, scores - expected, 0.0)
        slope = np.where(played, expected * (1.0 - expected), 0.0)
        curvature = np.block([[np.diag(slope.sum(1)), -slope], [-slope.T, np.diag(slope.sum(0))]])
        # All may be shifted alike; the 1 added keeps the mean where it is.
        step = np.linalg.solve(curvature + 1.0, np.concatenate([gap.sum(1), -gap.sum(0)]))
        longest = np.abs(step).max()
        strengths += step / max(1.0, longest)  # far from the maximum it would go too far
        if longest < 1e-10:
            break
    return SCALE * strengths
