"""Earlier versions as opponents, and Elo ratings, see `docs/two_player.md`."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from sb3_ext.callbacks.evaluation import player_of
from sb3_ext.two_player.config import SelfPlaySection
from sb3_ext.two_player.hironaka import ROLES, ByRole, Game, other_role
from sb3_ext.two_player.learner import Learner
from sb3_ext.types import StateDict

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
        section: how it is kept, and how long.
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
        section: SelfPlaySection,
        game: Game,
        learners: Mapping[str, Learner],
        opponents: ByRole,
        seed: int,
    ) -> None:
        self.section = section
        self.game = game
        self.learners = learners
        self.opponents = opponents
        self.seed = seed
        self.ratings = dict.fromkeys(ROLES, self.section.initial_elo)
        self.snapshots: dict[str, deque[Snapshot]] = {
            role: deque(maxlen=self.section.window) for role in ROLES
        }
        self.num_draws = 0
        self.in_play: dict[str, Snapshot | None] = dict.fromkeys(ROLES)
        self._benches: ByRole = {}

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
            # Target networks do not play.
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
                drawn = self.in_play[other] = saved[int(generator.integers(len(saved)))]
                self._seat(role)
                self._rate({other: drawn})

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

    def _rate(self, drawn: Mapping[str, Snapshot] = {}) -> None:
        """Play a rating match and change both ratings by Elo's rule.

        Args:
            drawn: by role, a snapshot that plays, and is rated, in place of the newest policy.
        """
        players = {name: learner.player for name, learner in self.learners.items()}
        ratings = dict(self.ratings)
        for role, snapshot in drawn.items():
            players[role], ratings[role] = self._player_of(role, snapshot), snapshot.rating
        first, second = ROLES
        lead = ratings[first] - ratings[second]
        expected = 1.0 / (1.0 + 10.0 ** (-lead / 400.0))  # of the first role, in 0..1
        change = ELO_K * (self.game.match(players, self.section.rating_games) - expected)
        ratings[first] += change
        ratings[second] -= change
        for role, snapshot in drawn.items():
            snapshot.rating = ratings.pop(role)
        self.ratings |= ratings  # the remaining ones are those of the newest policies

    def state_dict(self) -> StateDict:
        """Everything above as tensors and plain data."""
        return {
            "in_play": {role: each and dict(vars(each)) for role, each in self.in_play.items()},
            "num_draws": self.num_draws,
            "ratings": dict(self.ratings),
            "snapshots": {
                role: [dict(vars(each)) for each in saved] for role, saved in self.snapshots.items()
            },
        }

    def load_state_dict(self, state: StateDict) -> None:
        """Restore `state_dict`, and seat the opponents that were in play."""
        self.ratings = {role: float(state["ratings"][role]) for role in ROLES}
        self.num_draws = int(state["num_draws"])
        for role in ROLES:
            saved = (Snapshot(**entry) for entry in state["snapshots"][role])
            self.snapshots[role] = deque(saved, self.section.window)
            drawn = state["in_play"][role]
            self.in_play[role] = drawn and Snapshot(**drawn)
            for each in self.snapshots[role]:
                self._player_of(role, each)  # weights of another network are refused now
        for role in ROLES:
            self._seat(role)
