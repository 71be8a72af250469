"""Two roles, their models, and who plays whom: what a trainer works on."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.utils import get_device
from torch import nn

from resgym.game.devices import resolve_device
from sb3_ext.adapter.seam import restart_episodes
from sb3_ext.checkpoints.resume import callback_states
from sb3_ext.config.checks import errors_of, shown, unknown_word
from sb3_ext.config.effects import confine_paths
from sb3_ext.two_player.config import TrainerConfig
from sb3_ext.two_player.hironaka import ROLES, ByRole, Game, other_role, pair_name
from sb3_ext.two_player.kinds import learner_of, share_encoder
from sb3_ext.two_player.learner import Learner
from sb3_ext.two_player.pool import OpponentPool
from sb3_ext.types import Metrics


def _by_role(field: str, given: Any) -> Mapping[str, Any]:
    if not isinstance(given, Mapping | None):
        raise TypeError(f"{field} must map roles to their {field}, got {shown(given)}")
    return given or {}


class TwoPlayers:
    """The players of a configuration. `HostAgentTrainer` adds the training.

    Args:
        config: a configuration, a dictionary (not modified), a YAML file's path or the name of a
            configuration of this package.
        nets: networks to start from, by role, see `replace_nets`.
        rewards: rewards that a configuration cannot name, by role, see `replace_reward`.
        callbacks: callbacks of SB3 beside those of the configuration, by role.
        folder: where the configuration's callbacks write, each role in a folder of its own below;
            None: their paths are taken as they are.

    Attributes:
        config: what the players were made from.
        game: the game.
        roles: the roles that learn, by name; `roles["host"].model` is SB3's model.
        players: who plays each role now, without exploring.
        opponents: who answers each role that learns, see `set_opponent`.
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
        rewards: ByRole | None = None,
        callbacks: Mapping[str, BaseCallback | Iterable[BaseCallback]] | None = None,
        folder: Path | None = None,
    ) -> None:
        self.config, self.folder = TrainerConfig.read(config), folder
        with errors_of("game"):
            measured = self.config.evaluation
            self.game = Game(self.config.game, measured.seed, measured.max_moves)
        self.roles: dict[str, Learner] = {}
        self.players: ByRole = {}
        self.opponents: ByRole = {}
        self.pool: OpponentPool | None = None
        self.nets: dict[str, nn.Module] = {}
        self.rewards: ByRole = {}
        self._make_players()
        for role, reward in _by_role("rewards", rewards).items():
            self.replace_reward(role, reward)
        self.replace_nets(**_by_role("nets", nets))
        for role, given in _by_role("callbacks", callbacks).items():
            learner = self.learner(role)
            for callback in given if isinstance(given, Iterable) else [given]:
                learner.add_callback(callback)

    def _make_players(self) -> None:
        config = self.config
        game = self.game
        # One seed each for the two roles and the pool, whichever of them are there.
        *seeds, pool_seed = np.random.SeedSequence(config.seed).generate_state(3).tolist()
        with errors_of("compute.device"):
            name = config.compute.device
            # Not get_device(name): it answers with the CPU where there is no CUDA.
            device = str(get_device() if name == "auto" else resolve_device(name))
        for (role, section), seed in zip(config.roles, seeds, strict=True):
            with errors_of(f"roles.{role}"):
                if role in config.trained:
                    if self.folder is not None:
                        paths = confine_paths({"callbacks": section.callbacks}, self.folder / role)
                        section = section.model_copy(update=paths)
                    kind = learner_of(section.algorithm)
                    self.roles[role] = kind(role, section, game, seed, device)
                    self.players[role] = self.roles[role].player
                else:
                    self.players[role] = game.named_player(role, section.player)
        if config.shared_encoder:
            with errors_of("shared_encoder"):
                share_encoder(self.roles)
        with errors_of("evaluation.opponents"):
            self._measured_against = {
                role: {name: game.named_player(other_role(role), name) for name in names}
                for role, names in config.evaluation.opponents
            }
        for role, section in config.trained.items():
            with errors_of(f"roles.{role}.opponent"):
                self.set_opponent(role, section.opponent)
        if config.self_play is not None:
            self.pool = OpponentPool(config.self_play, game, self.roles, self.opponents, pool_seed)

    def learner(self, role: str) -> Learner:
        """Return the learner of a role; ValueError if the role does not learn."""
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
        learner, other = self.learner(role), other_role(role)
        if opponent == "pool" and self.config.trained[role].opponent != "pool":
            raise ValueError(f"opponent: {role} has no pool in the configuration")
        live = opponent in ("latest", "pool")  # in a pool until one is drawn
        learner.seat(self.players[other] if live else self.game.named_player(other, opponent))
        self.opponents[role] = opponent

    def replace_nets(self, **nets: nn.Module) -> None:
        """Puts networks in the place of those of roles: ``replace_nets(host=..., agent=...)``.

        See `Learner.set_network`. Snapshots of the role in the pool are dropped;
        experience, counters and schedules continue.

        Raises:
            ValueError, TypeError: no such role learns, or the module does not fit; the role stays
                as it was then.
        """
        for role, network in nets.items():
            self.learner(role).set_network(network)
            self.nets[role] = network
            if self.pool is not None:
                self.pool.forget(role)

    def begin_anew(self, role: str, seed: int) -> None:
        """Makes a role as one that was given this seed and has learnt nothing; the pool forgets it.

        Networks, optimiser, experience and counters begin anew; opponents, reward and callbacks
        stay.

        Raises:
            ValueError: the role's network is one that `replace_nets` gave it.
        """
        learner = self.learner(role)
        if role in self.nets:
            raise ValueError(f"begin_anew: {role} has a network that was put in, with its weights")
        section = learner.section.model_copy(update={"callbacks": []})
        other = type(learner)(role, section, self.game, seed, str(learner.model.device))
        callbacks = {f"{role}.callbacks": callback_states(learner.callback)}
        learner.load_state_dict(other.state_dict() | callbacks)
        other.env.close()
        restart_episodes(learner.model)
        if self.pool is not None:
            self.pool.forget(role)

    def replace_reward(self, role: str, reward: Any) -> None:
        """Lets a role play for another reward; its experience, made for the old one, is dropped.

        ``reward`` is a name or a function of a `Transition`, as for the environment.
        """
        learner = self.learner(role)
        learner.env.set_attr("reward", reward)
        learner.buffer.reset()
        self.rewards[role] = reward

    def collect_rollout(self, role: str, games: int | None = None) -> int:
        """Let a role play and remember, see `Learner.collect`."""
        return self.learner(role).collect(games)

    def evaluate_rho(self) -> Metrics:
        """Rho of the two players against each other, and of each against its opponents.

        The starts are the same each time and owe nothing to the random numbers of training.

        Returns:
            Values by pair, such as ``host-agent`` and ``host-choose_first``.
        """
        games = self.config.evaluation.games
        return {name: self.game.evaluate(pair, games) for name, pair in self.pairs().items()}

    def pairs(self) -> dict[str, ByRole]:
        """Who is measured against whom, by the names of `evaluate_rho`."""
        found = {"-".join(ROLES): self.players}
        for role, opponents in self._measured_against.items():
            for name, player in opponents.items():
                found[pair_name(role, name)] = {**self.players, other_role(role): player}
        return found

    def count_actions(self, role: str) -> list[int]:
        """How often a role takes each of its actions against the other role's player."""
        return self.game.count_actions(self.players, role, self.config.evaluation.action_games)

    def copy(self) -> Self:
        """New players with copies of the networks, but without experience and counters.

        They play for the same rewards against the same opponents as these do now, and the same
        roles are frozen. Of the callbacks they have those of the configuration.
        """
        duplicate = type(self)(
            self.config, nets=copy.deepcopy(self.nets), rewards=self.rewards, folder=self.folder
        )
        for role, learner in duplicate.roles.items():
            duplicate.set_opponent(role, self.opponents[role])
            learner.policy.load_state_dict(self.roles[role].policy.state_dict())
            learner.frozen = self.roles[role].frozen
        return duplicate

    def close(self) -> None:
        """Close the environments."""
        for learner in self.roles.values():
            learner.env.close()
