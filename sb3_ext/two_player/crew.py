"""Actors that play the rollouts of both roles, by pieces: some rows of a role's games each.

A request says all there is to know, and its answer where the games stand then, so that it is the
same whoever gives it. The number of pieces is part of a run, that of actors is not.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sb3_ext.adapter.sb3_private import begin_learning, restart_episodes
from sb3_ext.checkpoints.training_state import load_training_state, training_state
from sb3_ext.cluster.chunk import as_tensors
from sb3_ext.cluster.pieces import Processes
from sb3_ext.cluster.published import PublishedWeights
from sb3_ext.two_player.config import CollectorSection
from sb3_ext.two_player.experience import Elsewhere, bench_of, playing_weights
from sb3_ext.two_player.games import Game
from sb3_ext.two_player.learner import NO_END, Learner, learner_of


@dataclass(frozen=True)
class Request:
    """A piece of a rollout.

    Attributes:
        role: Whose games.
        rows: How many games.
        steps: Moves in each.
        seed: Of everything random.
        counters: Of the learner's model, which its schedules count by.
        games: Where they stand; None starts new ones.
        opponents: Who answers: a role and the version of its policy, or a player's number.
        assignment: Which of them answers in each row, if there are several.
    """

    role: str
    rows: int
    steps: int
    seed: int
    counters: Mapping[str, Any]
    games: Mapping[str, Any] | None
    opponents: list[tuple[str | None, int]]
    assignment: list[int] | None


@dataclass
class Play:
    """Plays what is requested, with learners of its own that never learn.

    Attributes:
        game: The game.
        sections: Of the roles that learn.
        benches: Policies of these roles, for their layers.
        nets: Networks that took the place of a policy's, by role.
        rewards: Rewards that a configuration cannot name, by role.
    """

    game: Game
    sections: dict[str, Any]
    benches: dict[str, Any]
    nets: dict[str, Any]
    rewards: dict[str, Any]
    _learners: dict[tuple[str, int], tuple[Learner, Any]] = field(default_factory=dict)
    _seats: dict[tuple[str | None, int], Any] = field(default_factory=dict)

    def __call__(self, asked: Request, *shared: Any) -> tuple[Any, dict[str, Any]]:
        """What was played, see `Learner.record`, and where the games stand then.

        `shared` are the weights to explore with, and for every opponent its weights, or a player.
        """
        weights, *others = shared
        learner, new_games = self._learner(asked.role, asked.rows)
        learner.policy.load_state_dict(as_tensors(weights), strict=False)
        seated = [
            self._seat(place, *named, other)
            for place, (named, other) in enumerate(zip(asked.opponents, others, strict=True))
        ]
        learner.set_opponents(seated, asked.assignment)
        model = learner.model
        learner.env.load_state_dict(asked.games["environment"] if asked.games else new_games)
        model.set_random_seed(asked.seed)
        if asked.games is None:
            restart_episodes(model)
        tensors, counters = training_state(model)
        if asked.games is not None:
            streams = {name: tensors[name] for name in tensors if name.startswith("random.")}
            tensors = {**asked.games["shown"], **streams}
        load_training_state(model, tensors, {**counters, **asked.counters})
        begin_learning(model, NO_END, learner.callback, reset_num_timesteps=False)
        experience = learner.record(asked.steps)  # type: ignore[attr-defined]
        tensors, _ = training_state(model)
        shown = {name: tensors[name] for name in tensors if not name.startswith("random.")}
        return experience, {"environment": learner.env.state_dict(), "shown": shown}

    def _learner(self, role: str, rows: int) -> tuple[Learner, Any]:
        """With an environment of so many rows, and its state as it was made."""
        key = (role, rows)
        if key not in self._learners:
            section = self.sections[role]
            rollout = section.rollout.model_copy(update={"rollout_size": rows})
            changes: dict[str, Any] = {"rollout": rollout, "callbacks": []}
            if hasattr(section, "replay_buffer"):
                size = rows * rollout.max_rollout_steps
                changes["replay_buffer"] = section.replay_buffer.model_copy(update={"size": size})
            kind = learner_of(section.algorithm)
            learner = kind(role, section.model_copy(update=changes), self.game, 0, "cpu")
            if role in self.nets:
                learner.set_network(copy.deepcopy(self.nets[role]))
            if role in self.rewards:
                learner.set_reward(self.rewards[role])
            self._learners[key] = learner, learner.env.state_dict()
        return self._learners[key]

    def _seat(self, place: int, role: str | None, number: int, given: Any) -> Any:
        key = (role, number if role is None else place)
        if key not in self._seats:
            bench = None if role is None else copy.deepcopy(self.benches[role])
            player = (
                pickle.loads(given) if role is None else self.game.policy_player(role, bench, role)
            )
            self._seats[key] = bench, player
        bench, player = self._seats[key]
        if bench is not None:
            bench.load_state_dict(as_tensors(given), strict=False)
        return player


class RolloutCrew:
    """Has the rollouts of a role played by processes of a Ray cluster.

    Args:
        ray: The module, connected.
        section: How many processes, parts of a role's rows, and how long one may take.
        game: The game.
        learners: Roles that learn, by name.
        pool: The opponent pool, or None.
        nets: As in `Play`.
        rewards: As in `Play`.

    Raises:
        ValueError: The cluster is too small, or a role cannot be played elsewhere.
    """

    def __init__(
        self,
        ray: Any,
        section: CollectorSection,
        game: Game,
        learners: Mapping[str, Learner],
        pool: Any,
        nets: Mapping[str, Any],
        rewards: Mapping[str, Any],
    ) -> None:
        self._ray, self._pieces, self._game, self._pool = ray, section.pieces, game, pool
        self._learners, self._nets, self._rewards = learners, nets, rewards
        for role, learner in learners.items():
            what = f"collector: roles.{role}: the learner of {learner.section.algorithm}"
            if not hasattr(learner, "record"):
                raise ValueError(f"{what} cannot play in another process")
            if not learner.env.has_attr("load_state_dict"):
                raise ValueError(f"{what} has games without state_dict and load_state_dict")
        self.renew()
        self._processes = Processes(ray, section.actors, timeout=section.timeout_s)

    def renew(self) -> None:
        """The networks or rewards are others than before."""
        roles = self._learners.items()
        self._play = Play(
            self._game,
            {role: learner.section for role, learner in roles},
            {role: bench_of(learner.policy).cpu() for role, learner in roles},
            dict(self._nets),
            dict(self._rewards),
        )
        self._weights = {
            role: PublishedWeights(self._ray, playing_weights(learner.policy))
            for role, learner in roles
        }
        self._others: list[tuple[Any, Any]] = []

    def stop(self) -> None:
        """End all processes; again is harmless."""
        self._processes.stop()

    def play(self, learner: Learner, steps: int) -> bool:
        """One rollout of a role's games into its experience; False if a callback ended training."""
        stands, section = learner.elsewhere, learner.section.rollout
        going_on = bool(stands.games) and not section.reset_each_rollout
        games = stands.games if going_on else [None] * self._pieces
        players, assignment = learner.seated
        named, shared = zip(*(self._named(learner, player) for player in players), strict=True)
        _, counters = training_state(learner.model)
        counters.pop("action_space", None)
        requests = []
        rows = np.array_split(np.arange(section.rollout_size), self._pieces)
        for piece, (where, part) in enumerate(zip(rows, games, strict=True)):
            words = np.random.SeedSequence((learner.seed, stands.played, piece))
            requests.append(
                Request(
                    role=learner.role,
                    rows=len(where),
                    steps=steps,
                    seed=int(words.generate_state(1)[0]),
                    counters=counters,
                    games=part,
                    opponents=list(named),
                    assignment=None if assignment is None else [assignment[row] for row in where],
                )
            )
        _, own = self._published(learner)
        played = self._processes.map(self._play, requests, own, *shared)
        parts, after = zip(*played, strict=True)
        learner.elsewhere = Elsewhere(stands.played + 1, list(after))
        for role, weights in self._weights.items():
            weights.keep({self._learners[role].updates, *self._versions(role)})
        return learner.take(list(parts), steps)  # type: ignore[attr-defined, no-any-return]

    def _published(self, learner: Learner) -> tuple[tuple[str, int], Any]:
        """Role and version of a policy as it is now, and where its weights are."""
        role, version, weights = learner.role, learner.updates, self._weights[learner.role]
        weights.put(version, playing_weights(learner.policy))
        return (role, version), weights[version]

    def _named(self, learner: Learner, player: Any) -> tuple[tuple[str | None, int], Any]:
        """What an opponent is called in requests, and where its weights are, or it is itself."""
        other = self._game.other(learner.role)
        if other in self._learners and player is self._learners[other].player:
            return self._published(self._learners[other])
        if self._pool is not None and learner.role in self._pool.pooled:
            drawn = self._pool.in_play[other]
            self._weights[other].put(drawn.version, drawn.weights)
            return (other, drawn.version), self._weights[other][drawn.version]
        for number, (known, reference) in enumerate(self._others):
            if known is player:
                return (None, number), reference
        self._others.append((player, self._ray.put(self._ray.cloudpickle.dumps(player))))
        return (None, len(self._others) - 1), self._others[-1][1]

    def _versions(self, role: str) -> set[int]:
        """Versions of a role that may answer again."""
        if self._pool is None:
            return set()
        drawn = self._pool.in_play[role]
        snapshots = [*self._pool.snapshots[role], *([] if drawn is None else [drawn])]
        return {each.version for each in snapshots}
