"""Two roles, their models, and who plays whom: what a trainer works on."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.utils import get_device
from torch import nn

from resgym.game.devices import resolve_device
from sb3_ext.adapter.sb3_private import restart_episodes
from sb3_ext.checkpoints.resume import callback_states
from sb3_ext.cluster.connection import connected
from sb3_ext.config.registry import unknown_word
from sb3_ext.config.sections import errors_of
from sb3_ext.two_player.config import TrainerConfig
from sb3_ext.two_player.crew import RolloutCrew
from sb3_ext.two_player.games import GAMES
from sb3_ext.two_player.learner import Learner, learner_of
from sb3_ext.two_player.pool import OpponentPool
from sb3_ext.two_player.sharing import share_encoder


class TwoPlayers:
    """The players of a configuration. `HostAgentTrainer` adds the training.

    Args:
        config: a configuration, a dictionary (not modified), a YAML file's path or the name of a
            configuration of this package.
        nets: networks to start from, by role, see `replace_nets`.
        rewards: rewards that a configuration cannot name, by role, see `replace_reward`.
        opponents: opponents that a configuration cannot name, by role, see `set_opponent`.
        callbacks: callbacks of SB3 beside those of the configuration, by role.

    Attributes:
        config: what the players were made from.
        game: the game.
        roles: the roles that learn, by name; `roles["host"].model` is SB3's model.
        players: who plays each role now, without exploring.
        pool: the opponent pool, or None.
        nets, rewards: those that were given beside the configuration, by role.

    Raises:
        ConfigError: the configuration is not valid, or an algorithm refuses its arguments.
    """

    def __init__(
        self,
        config: TrainerConfig | Mapping[str, Any] | str | Path,
        *,
        nets: Mapping[str, nn.Module] | None = None,
        rewards: Mapping[str, Any] | None = None,
        opponents: Mapping[str, Any] | None = None,
        callbacks: Mapping[str, Iterable[BaseCallback]] | None = None,
    ) -> None:
        self.config = TrainerConfig.read(config)
        with errors_of("game"):
            self.game = GAMES.resolve(self.config.game.name)(self.config.game)
        self.roles: dict[str, Learner] = {}
        self.players: dict[str, Any] = {}
        self.pool: OpponentPool | None = None
        self.nets: dict[str, nn.Module] = {}
        self._opponents: dict[str, Any] = {}
        self.rewards: dict[str, Any] = {}
        self._crew: RolloutCrew | None = None
        self._make_players()
        for role, opponent in (opponents or {}).items():
            self.set_opponent(role, opponent)
        for role, reward in (rewards or {}).items():
            self.replace_reward(role, reward)
        self.replace_nets(**(nets or {}))
        for role, given in (callbacks or {}).items():
            for callback in given:
                self.learner(role).add_callback(callback)

    def _make_players(self) -> None:
        config, game = self.config, self.game
        # One seed each for the two roles and the pool, whoever of them is there.
        *seeds, pool_seed = np.random.SeedSequence(config.seed).generate_state(3).tolist()
        with errors_of("compute.device"):
            name = config.compute.device
            # Not get_device(name): it answers with the CPU where there is no CUDA.
            device = str(get_device() if name == "auto" else resolve_device(name))
        for role, seed in zip(game.roles, seeds, strict=True):
            section = config.roles[role]
            with errors_of(f"roles.{role}"):
                if role in config.trained:
                    kind = learner_of(section.algorithm)
                    self.roles[role] = kind(role, section, game, seed, device)
                    self.players[role] = self.roles[role].player
                else:
                    self.players[role] = game.named_player(role, section.player)
        if config.shared_encoder:
            with errors_of("shared_encoder"):
                share_encoder(self.roles)
        if config.self_play is not None:
            self.pool = OpponentPool(config, game, self.roles, pool_seed)
        with errors_of("evaluation.opponents"):
            self._measured_against = {
                role: {name: game.named_player(game.other(role), name) for name in names}
                for role, names in config.evaluation.opponents.items()
            }
        for role in self.roles:
            with errors_of(f"roles.{role}.opponent"):
                self.set_opponent(role, config.roles[role].opponent)

    def learner(self, role: str) -> Learner:
        """The role of this name that learns; else a ValueError."""
        if role not in self.roles:
            raise ValueError(unknown_word("role that learns", role, self.roles))
        return self.roles[role]

    def freeze(self, role: str) -> None:
        """Leave a role out of training; it still plays, and its weights stay as they are."""
        self.learner(role).frozen = True

    def unfreeze(self, role: str) -> None:
        """Train a role again."""
        self.learner(role).frozen = False

    def set_opponent(self, role: str, opponent: Any) -> None:
        """Say who answers a role in its rollouts.

        Args:
            role: a role that learns.
            opponent: ``latest`` (the other role's player, as it is at each move), ``pool`` (only if
                the configuration has `self_play` for this role), the name of a scripted player, the
                path of a saved model, or a player.

        Raises:
            ValueError, TypeError: it is none of these.
        """
        learner, other = self.learner(role), self.game.other(role)
        player, latest = opponent, self.players[other]
        if opponent is latest:
            opponent = "latest"
        elif opponent == "pool" and self.config.roles[role].opponent != "pool":
            raise ValueError(f"opponent: {role} has no pool in the configuration")
        elif isinstance(opponent, str):
            live = opponent in ("latest", "pool")  # in a pool until one is drawn
            player = latest if live else self.game.named_player(other, opponent)
        learner.set_opponents([player])
        self._opponents[role] = opponent
        if self.pool is not None:
            self.pool.pooled = [role for role in self.roles if self._opponents.get(role) == "pool"]

    def replace_nets(self, **nets: nn.Module) -> None:
        """Puts networks in the place of those of roles: ``replace_nets(host=..., agent=...)``.

        See `OffPolicyLearner.set_network`. Snapshots of the role in the pool are dropped;
        experience, counters and schedules go on.

        Raises:
            ValueError, TypeError: no such role learns, or the module does not fit; it stays as it
                was then.
        """
        for role, network in nets.items():
            try:
                self.learner(role).set_network(network)
            except (RuntimeError, TypeError, ValueError) as error:
                raise type(error)(f"replace_nets: {role}: {error}") from error
            self.nets[role] = network
            self._renew_crew()
            if self.pool is not None:
                self.pool.forget(role)

    def begin_anew(self, role: str, seed: int) -> None:
        """Makes a role as one that was given this seed and has learnt nothing; the pool forgets it.

        Networks, optimiser, experience and counters begin anew; opponents, reward and callbacks
        stay.

        Raises:
            ValueError: no such role learns, or its network is one that `replace_nets` gave it.
        """
        learner = self.learner(role)
        if role in self.nets:
            raise ValueError(f"begin_anew: {role} has a network that was put in, with its weights")
        section = learner.section.model_copy(update={"callbacks": []})
        other = type(learner)(role, section, self.game, seed, str(learner.model.device))
        state = other.state_dict()
        state[f"{role}.elsewhere"] = {**learner.elsewhere, "games": []}
        state[f"{role}.callbacks"] = callback_states(learner.callback)
        learner.load_state_dict(state)
        other.env.close()
        restart_episodes(learner.model)
        self._renew_crew()
        if self.pool is not None:
            self.pool.forget(role)

    def replace_reward(self, role: str, reward: Any) -> None:
        """Lets a role play for another reward; its experience, made for the old one, is dropped.

        ``reward`` is a name of the game's, or what else the game takes (`resgym`: a function of a
        `Transition`); of anything else a ValueError or TypeError tells.
        """
        self.learner(role).set_reward(reward)
        self.rewards[role] = reward
        self._renew_crew()

    def collect_rollout(
        self, role: str, games: int | None = None, max_steps: int | None = None
    ) -> int:
        """Let a role play and remember, see `Learner.collect`."""
        with self.collecting():
            return self.learner(role).collect(games, max_steps)

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Actors play the rollouts while the block lasts, if the configuration has some."""
        section = self.config.collector
        if section is None or not section.actors or self._crew is not None:
            yield
            return
        with connected(None) as ray:
            self._crew = RolloutCrew(ray, self)
            try:
                for learner in self.roles.values():
                    learner.crew = self._crew
                yield
            finally:
                self._crew = None
                for learner in self.roles.values():
                    learner.crew = None

    def _renew_crew(self) -> None:
        if self._crew is not None:
            self._crew.renew()

    def evaluate_rho(self, games: int | None = None, seed: int | None = None) -> dict[str, float]:
        """The measure of the two players against each other, and of each against its opponents.

        The starts are the same each time and owe nothing to the random numbers of training.

        Args:
            games: games of each pair; None: as configured.
            seed: of the starts; None: as configured.

        Returns:
            Values by pair, such as ``host-agent`` and ``host-choose_first``.
        """
        section = self.config.evaluation
        games = section.games if games is None else games
        seed = section.seed if seed is None else seed
        return {
            name: self.game.evaluate(pair, games, seed, section.max_moves)
            for name, pair in self.pairs().items()
        }

    def pairs(self) -> dict[str, dict[str, Any]]:
        """Who is measured against whom, by the names of `evaluate_rho`."""
        found = {"-".join(self.game.roles): self.players}
        for role in self.game.roles:
            for name, player in self._measured_against[role].items():
                other = {self.game.other(role): player}
                found[self.game.pair_name(role, name)] = {**self.players, **other}
        return found

    def count_actions(self, role: str, games: int | None = None) -> list[int]:
        """How often a role takes each of its actions against the other role's player."""
        if role not in self.game.roles:
            raise ValueError(unknown_word("role", role, self.game.roles))
        section = self.config.evaluation
        games = section.action_games if games is None else games
        return self.game.count_actions(self.players, role, games, section.seed, section.max_moves)

    def copy(self) -> Self:
        """New players with copies of the networks, but without experience and counters.

        They play for the same rewards against the same opponents as these do now, and the same
        roles are frozen. Of the callbacks they have those of the configuration.
        """
        duplicate = type(self)(
            self.config,
            nets=copy.deepcopy(self.nets),
            rewards=self.rewards,
            opponents=self._opponents,
        )
        for role, learner in duplicate.roles.items():
            learner.policy.load_state_dict(self.roles[role].policy.state_dict())
            learner.frozen = self.roles[role].frozen
        return duplicate

    def close(self) -> None:
        """Close the environments."""
        for learner in self.roles.values():
            learner.env.close()
