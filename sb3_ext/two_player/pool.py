"""Earlier versions as opponents, and Elo ratings: the pool of a trainer, the standings of a league.

See `docs/two_player.md` and `docs/population.md`.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor

from resgym.game.spec import Role
from sb3_ext.callbacks.evaluation import player_of
from sb3_ext.two_player.config import TrainerConfig
from sb3_ext.two_player.hironaka import ROLES, Game, other_role
from sb3_ext.two_player.learner import Learner

ELO_K = 32.0
"""Largest change of a rating in one match."""


@dataclass
class Snapshot:
    """A policy as it was after `version` updates; `weights` are without the target network.

    It begins with the rating of its role and keeps its own from then on.
    """

    version: int
    rating: float
    weights: dict[str, Tensor]

    def __post_init__(self) -> None:
        self.rating = float(self.rating)


class OpponentPool:
    """Snapshots of both roles, who plays now, and ratings.

    Args:
        config: its `self_play`, and of `evaluation` seed and longest game of rating matches.
        game: plays the rating matches.
        learners: the two roles.
        opponents: by role who answers it; those that ``pool`` answers meet drawn snapshots.
        seed: seed of the draws.

    Attributes:
        ratings: ratings of the policies as they are now, by role.
        snapshots: by role, the oldest first.
        num_draws: draws made so far; with the seed the whole random state.
        in_play: by role, the snapshot of it that answers the other role; None: only the newest.
    """

    def __init__(
        self,
        config: TrainerConfig,
        game: Game,
        learners: Mapping[str, Learner],
        opponents: Mapping[str, Any],
        seed: int,
    ) -> None:
        assert config.self_play is not None
        self.section, self.evaluation = config.self_play, config.evaluation
        self.game, self.learners, self.opponents, self.seed = game, learners, opponents, seed
        self.ratings = dict.fromkeys(ROLES, self.section.initial_elo)
        self.snapshots: dict[str, deque[Snapshot]] = {
            role: deque(maxlen=self.section.window) for role in ROLES
        }
        self.num_draws = 0
        self.in_play: dict[str, Snapshot | None] = dict.fromkeys(ROLES)
        self._benches: dict[str, Any] = {}

    def before_step(self, step: int) -> None:
        """Save, draw and rate what is due before the trainer's step of this number, from 0."""
        if step % self.section.save_steps == 0:
            self.save()
        if step % self.section.swap_steps == 0:
            self.swap()

    def save(self) -> None:
        """Add a snapshot of each role that changed since its last one; rate the newest policies."""
        for role, learner in self.learners.items():
            saved = self.snapshots[role]
            if saved and saved[-1].version == learner.updates:
                continue
            weights = {
                name: value.detach().clone()
                for name, value in learner.policy.state_dict().items()
                if "_target." not in name
            }
            saved.append(Snapshot(learner.updates, self.ratings[role], weights))
        self._rate()

    def swap(self) -> None:
        """Draw an opponent for every role that plays against the pool, seat it, and rate."""
        for role in ROLES:
            other = other_role(role)
            saved = self.snapshots[other]
            if saved and self.opponents[role] == "pool":
                self.num_draws += 1
                generator = np.random.default_rng([self.seed, self.num_draws])
                self.in_play[other] = saved[int(generator.integers(len(saved)))]
                self._seat(role)
                self._rate(other)

    def forget(self, role: str) -> None:
        """Drop a role's snapshots, because its network is another one now."""
        self.snapshots[role].clear()
        self._benches.pop(role, None)
        self.in_play[role] = None
        self._seat(other_role(role))

    def _player_of(self, role: str, snapshot: Snapshot) -> Any:
        """A player for a snapshot; all of a role share one policy, so earlier players change."""
        if role not in self._benches:
            bench = self._benches[role] = copy.deepcopy(self.learners[role].policy)
            bench.optimizer = None
            bench.requires_grad_(False).set_training_mode(False)
        self._benches[role].load_state_dict(snapshot.weights, strict=False)
        return player_of(self._benches[role], f"{role}@{snapshot.version}")

    def _seat(self, role: str) -> None:
        """Seat the newest opponent, and the one in play, against a role of the pool."""
        other = other_role(role)
        if self.opponents[role] == "pool":
            drawn = self.in_play[other]
            others = [] if drawn is None else [self._player_of(other, drawn)]
            share = self.section.play_against_latest_model_ratio
            self.learners[role].seat(self.learners[other].player, others, share)

    def _rate(self, role: str | None = None) -> None:
        """Play a rating match of the newest policies; with a role, of its snapshot in play."""
        players = {name: learner.player for name, learner in self.learners.items()}
        ratings = dict(self.ratings)
        drawn = None if role is None else self.in_play[role]
        if role is not None and drawn is not None:
            players[role], ratings[role] = self._player_of(role, drawn), drawn.rating
        first, second = ROLES
        about = self.section.rating_games, self.evaluation.seed, self.evaluation.max_moves
        ahead = ratings[first] - ratings[second]
        expected = 1.0 / (1.0 + 10.0 ** (-ahead / 400.0))  # Elo's score, in 0..1
        change = ELO_K * (self.game.match(players, *about) - expected)
        ratings[first] += change
        ratings[second] -= change
        if role is not None and drawn is not None:
            drawn.rating = ratings.pop(role)
        self.ratings.update(ratings)

    def state_dict(self) -> dict[str, Any]:
        """Everything above as tensors and plain data."""
        drawn = {role: each and dict(vars(each)) for role, each in self.in_play.items()}
        return {
            "in_play": drawn,
            "num_draws": self.num_draws,
            "ratings": dict(self.ratings),
            "snapshots": {
                role: [dict(vars(each)) for each in saved] for role, saved in self.snapshots.items()
            },
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore `state_dict`, and seat the opponents that were in play."""
        self.ratings = {role: float(state["ratings"][role]) for role in ROLES}
        self.num_draws = int(state["num_draws"])
        for role in ROLES:
            saved = (Snapshot(**entry) for entry in state["snapshots"][role])
            self.snapshots[role] = deque(saved, self.section.window)
            drawn = state["in_play"][role]
            self.in_play[role] = None if drawn is None else Snapshot(**drawn)
            for each in self.snapshots[role]:
                self._player_of(role, each)  # weights of another network are refused now
        for role in ROLES:
            self._seat(role)


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

    role: Role
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
        games: number of games of a pairing. Scores nearer to 0 and 1 than half a game are moved
            there, or ratings would have no bound.

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
