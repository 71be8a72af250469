"""Actors that play the rollouts of both roles, by pieces: some rows of a role's games each.

A request says all there is to know, and its answer where the games stand then, so that it is the
same whoever gives it. The number of pieces is part of a run, that of actors is not.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
from torch import Tensor

from sb3_ext.adapter.sb3_private import begin_learning, restart_episodes
from sb3_ext.checkpoints.model_state import load_training_state, training_state
from sb3_ext.cluster.chunk import blocks, side_by_side, stacked
from sb3_ext.cluster.pieces import Processes
from sb3_ext.two_player.games import Game
from sb3_ext.two_player.learner import NO_END, Learner, learner_of


def playing_weights(policy: Any) -> dict[str, Tensor]:
    """Those of a policy without its target network."""
    weights = policy.state_dict()
    return {name: value for name, value in weights.items() if "_target." not in name}


def bench_of(policy: Any) -> Any:
    """A copy of a policy that plays, and never learns."""
    bench = copy.deepcopy(policy)
    bench.optimizer = None
    bench.requires_grad_(False).set_training_mode(False)
    return bench


@dataclass
class Play:
    """Plays what is requested, with learners of its own that never learn.

    Attributes:
        game: The game.
        sections: Of the roles that learn.
        nets: Networks that took the place of a policy's, by role.
        rewards: Rewards that a configuration cannot name, by role.
    """

    game: Game
    sections: dict[str, Any]
    nets: dict[str, Any]
    rewards: dict[str, Any]
    _learners: dict[tuple[str, int], tuple[Learner, Any]] = field(default_factory=dict)

    def __call__(self, asked: Mapping[str, Any], packed: bytes) -> tuple[Any, dict[str, Any]]:
        """The steps of a request, and where its games stand then.

        ``packed`` are the weights to explore with, and the opponents.
        """
        from ray import cloudpickle

        weights, opponents = cloudpickle.loads(packed)
        learner, new_games = self._learner(asked["role"], asked["rows"])
        model, games = learner.model, asked["games"]
        learner.policy.load_state_dict(weights, strict=False)
        learner.set_opponents(opponents, asked["assignment"])
        learner.env.load_state_dict(games["environment"] if games else new_games)
        model.set_random_seed(asked["seed"])
        if games is None:
            restart_episodes(model)
        tensors, counters = training_state(model)
        shown = games["shown"] if games else {}
        load_training_state(model, {**tensors, **shown}, {**counters, **asked["counters"]})
        begin_learning(model, NO_END, learner.callback, reset_num_timesteps=False)
        steps = stacked(model.play(learner.env, asked["steps"]))
        tensors, _ = training_state(model)
        shown = {name: tensors[name] for name in tensors if not name.startswith("random.")}
        return steps, {"environment": learner.env.state_dict(), "shown": shown}

    def _learner(self, role: str, rows: int) -> tuple[Learner, Any]:
        """With an environment of so many rows, and its state as it was made."""
        key = (role, rows)
        if key not in self._learners:
            section = self.sections[role]
            rollout = section.rollout.model_copy(update={"rollout_size": rows})
            own = section.model_copy(update={"rollout": rollout, "callbacks": []})
            learner = learner_of(section.algorithm)(role, own, self.game, 0, "cpu")
            if role in self.nets:
                learner.set_network(self.nets[role])
            if role in self.rewards:
                learner.set_reward(self.rewards[role])
            self._learners[key] = learner, learner.env.state_dict()
        return self._learners[key]


class RolloutCrew:
    """Has the rollouts of two players played by processes of a Ray cluster.

    Args:
        ray: The module, connected.
        players: `TwoPlayers` whose configuration has a collector.

    Raises:
        ValueError: The cluster is too small, or a role cannot be played elsewhere.
    """

    def __init__(self, ray: Any, players: Any) -> None:
        self._ray, self._players = ray, players
        for role, learner in players.roles.items():
            if not learner.env.has_attr("load_state_dict"):
                raise ValueError(f"collector: the game of roles.{role} has no load_state_dict")
        self.renew()
        self._processes = Processes(ray, players.config.collector.actors)

    def renew(self) -> None:
        """The networks or rewards are others than before."""
        given = self._players
        sections = {role: learner.section for role, learner in given.roles.items()}
        self._play = Play(given.game, sections, dict(given.nets), dict(given.rewards))

    def play(self, learner: Learner, steps: int) -> bool:
        """One rollout of a role's games into its experience; False if a callback ended training."""
        stands, section = learner.elsewhere, learner.section.rollout
        pieces = self._players.config.collector.pieces
        going_on = bool(stands["games"]) and not section.reset_each_rollout
        games = stands["games"] if going_on else [None] * pieces
        players, assignment = learner.seated
        _, counters = training_state(learner.model)
        requests = []
        rows = np.array_split(np.arange(section.rollout_size), pieces)
        for piece, (where, part) in enumerate(zip(rows, games, strict=True)):
            words = np.random.SeedSequence((learner.seed, stands["played"], piece))
            requests.append(
                {
                    "role": learner.role,
                    "rows": len(where),
                    "steps": steps,
                    "seed": int(words.generate_state(1)[0]),
                    "counters": counters,
                    "games": part,
                    "assignment": None if assignment is None else [assignment[r] for r in where],
                }
            )
        weights = {name: value.cpu() for name, value in playing_weights(learner.policy).items()}
        given = weights, [self._still(player) for player in players]
        packed = self._ray.put(self._ray.cloudpickle.dumps(given))
        parts, after = zip(*self._processes.map(self._play, requests, packed), strict=True)
        learner.elsewhere = {"played": stands["played"] + 1, "games": list(after)}
        together = side_by_side(parts)
        played = SimpleNamespace(
            publish=lambda *_: None, collect=lambda _: blocks(together, section.rollout_size)
        )
        with learner.model.collecting_from(played):
            return learner.play(steps)

    def _still(self, player: Any) -> Any:
        """A player that does not learn, on the CPU."""
        for role, learner in self._players.roles.items():
            if player is learner.player:
                return self._players.game.policy_player(role, bench_of(learner.policy).cpu(), role)
        return player
