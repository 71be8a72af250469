"""The configuration of the host/agent trainer: every key, its type, its range, its meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from annotated_types import Ge, Le
from pydantic import model_validator

import sb3_ext.two_player.hironaka
import sb3_ext.two_player.off_policy
import sb3_ext.two_player.on_policy  # noqa: F401  # what names find
from sb3_ext.algorithms import ALGORITHMS
from sb3_ext.config.checks import shown
from sb3_ext.config.reading import ConfigFile
from sb3_ext.config.registry import unknown_word
from sb3_ext.config.sections import (
    ConfigError,
    Count,
    Fraction,
    Name,
    PositiveCount,
    PositiveNumber,
    Section,
    Size,
    Version,
    Whole,
    checked,
    errors_of,
    read_section,
)
from sb3_ext.two_player.games import GAMES
from sb3_ext.two_player.learner import TrainedRole, learner_of
from sb3_ext.two_player.phases import Phases
from sb3_ext.two_player.update_schedule import AlternatingPeriodic, UpdateSchedule, parse_updates


class ScriptedRole(Section):
    """A role that does not learn."""

    player: str
    """name of a scripted player, or the path of a saved model"""


class TrainingSection(Section):
    """How long, who, and who when."""

    steps: PositiveCount
    """steps; one is an update of every role that is due"""
    players: list[str]
    """roles to train, in the order of their updates"""
    updates: Any
    """which role is updated when, see update schedules"""


class EvaluationSection(Section):
    """The measure of the players."""

    every_steps: PositiveCount
    """steps between evaluations; one more at the end"""
    games: Size
    """games of each pairing, from the same starts each time"""
    max_moves: PositiveCount
    """games are cut after so many moves"""
    seed: Count
    """fixes the starts, independent of the seed of training"""
    action_games: Size
    """games in which actions are counted"""
    keep_best: bool
    """keep the best model of each role, see the documentation"""
    opponents: dict[str, list[str]]
    """per role the scripted players that it is measured against"""


class SelfPlaySection(Section):
    """The pool of earlier opponents and their ratings; key names as in ML-Agents."""

    save_steps: PositiveCount
    """steps between two snapshots"""
    team_change: Count
    """steps after which the other role learns; 0: as training.updates says"""
    swap_steps: PositiveCount
    """steps between two draws of the opponent"""
    window: PositiveCount
    """snapshots kept of each role, the newest ones"""
    play_against_latest_model_ratio: Fraction
    """part of the games that meet the newest opponent, not one from the pool"""
    initial_elo: PositiveNumber
    """rating of a role at the start"""
    rating_games: Size
    """games of a rating match"""


class LoggingSection(Section):
    """What is written while training."""

    every_steps: PositiveCount
    """steps between two lines of metrics"""
    layers: bool
    """mean and deviation of every layer's weights and gradients"""
    tensorboard: bool
    """write TensorBoard files into the run's folder too"""
    sample_games: Count = 0
    """games of the players against each other that are written down at every evaluation, from the
    same starts each time (default 0)"""


class CheckpointSection(Section):
    """What survives a crash."""

    every_steps: PositiveCount
    """steps between checkpoints; one more at the end"""
    keep: PositiveCount
    """newest checkpoints kept"""


class ComputeSection(Section):
    """Where the work is done."""

    device: str
    """cpu, cuda, cuda:1, ... or auto"""
    torch_threads: Annotated[int, Whole, Ge(1), Le(1024)] | None
    """threads of a tensor operation while training; null: leave as it is"""
    deterministic: bool = False
    """only operations that give the same bits each time, where PyTorch has one; where it has none
    it warns. For CUDA: on a CPU runs repeat themselves anyway (default false)"""
    tf32: bool = False
    """allow TF32 matrix multiplication: faster on recent NVIDIA GPUs, lower precision (default
    false)"""
    detect_anomaly: bool = False
    """look for NaN in every gradient and name the operation that made it; updates take several
    times as long (default false)"""


class CollectorSection(Section):
    """Who plays the rollouts."""

    actors: Count
    """processes on a Ray cluster that play, see cluster.md; 0: none, as without the section"""
    pieces: PositiveCount = 4
    """parts of a role's rows that are played one by one; another number is another run, which
    another number of actors is not (default 4)"""
    timeout_s: Annotated[PositiveNumber, Le(86_400)] = 600.0
    """seconds after which an actor that has not played its part is replaced (default 600)"""


def _read_game(data: Any) -> Any:
    name = data["name"] if isinstance(data, Mapping) and "name" in data else None
    if name is None:
        raise ValueError(f" must be a mapping with the key name, got {shown(data)}")
    with errors_of(".name", ValueError):
        settings = GAMES.resolve(name).Settings
    return read_section(settings, data, "game")


def _read_roles(data: Any) -> Any:
    if not isinstance(data, Mapping):
        raise ValueError(f" must be a mapping from role to its section, got {shown(data)}")
    return {str(name): _read_role(f"roles.{name}", each) for name, each in data.items()}


def _read_role(where: str, data: Any) -> TrainedRole | ScriptedRole:
    if isinstance(data, (TrainedRole, ScriptedRole)):
        return data
    if not isinstance(data, Mapping):
        raise ConfigError(f"{where} must be a mapping, got {shown(data)}")
    if data.get("player", "trained") != "trained":
        return read_section(ScriptedRole, data, where)
    if "algorithm" not in data:  # no other key can be judged
        raise ConfigError(
            f"{where}.algorithm is missing: {TrainedRole.model_fields['algorithm'].description}"
        )
    with errors_of(f"{where}.algorithm"):
        section = learner_of(data["algorithm"]).Section
    return read_section(section, data, where)


class TrainerConfig(ConfigFile):
    """A whole configuration."""

    folder: ClassVar[str] = "two_player"

    config_version: Version
    name: Name
    """name of the experiment, part of its folder's name"""
    seed: Count
    """fixes everything random in training"""
    game: Annotated[Any, checked(_read_game)]
    """the game and its sizes"""
    training: TrainingSection
    """how long, who, and who when"""
    evaluation: EvaluationSection
    """the measure of the players"""
    self_play: SelfPlaySection | None
    """pool of earlier opponents, or null"""
    logging: LoggingSection
    """what is written while training"""
    checkpoint: CheckpointSection | None
    """checkpoints, or null for none"""
    compute: ComputeSection
    """where the work is done"""
    collector: CollectorSection | None = None
    """actors, or null for none; may be left out"""
    shared_encoder: bool = False
    """one encoder of positions for both roles: weights of their features extractors that have the
    same name and shape are one (default false: each has its own)"""
    roles: Annotated[dict[str, Any], checked(_read_roles)]
    """per role how it learns, or who plays it"""

    @model_validator(mode="after")
    def _parts_fit(self) -> TrainerConfig:
        names = GAMES.resolve(self.game.name).roles
        _same_names("roles", self.roles, names)
        _same_names("evaluation.opponents", self.evaluation.opponents, names)
        players = self.training.players
        trained = [name for name, role in self.roles.items() if isinstance(role, TrainedRole)]
        for player in players:
            if player not in trained:
                unknown = unknown_word("trained role", player, trained)
                raise ValueError(f".training.players: {unknown}")
        if not players or len(set(players)) < len(players):
            raise ValueError(f".training.players must name each role once, got {players}")
        with errors_of(".training.updates", ValueError):
            schedules = parse_updates(self.training.updates, names)
        if len(players) < 2 and any(isinstance(each, Phases) for each in schedules.values()):
            raise ValueError(
                f".training.updates: mode alternating needs both roles in training.players, got "
                f"{players}"
            )
        self._self_play_fits()
        self._collector_fits(trained)
        if self.shared_encoder and (len(trained) < 2 or (self.collector and self.collector.actors)):
            given = "actors" if len(trained) == 2 else "a scripted role"
            raise ValueError(f".shared_encoder must be false with {given}")
        return self

    def _collector_fits(self, trained: list[str]) -> None:
        if self.collector is None or not self.collector.actors:
            return
        for name in trained:
            given = self.roles[name].algorithm
            if not hasattr(ALGORITHMS.resolve(given), "collects_tensors"):
                raise ValueError(
                    f".roles.{name}.algorithm: got {given}; expected ddqn with collector.actors"
                )
            rows, pieces = self.roles[name].rollout.rollout_size, self.collector.pieces
            if pieces > rows:
                raise ValueError(
                    f".collector.pieces must be at most roles.{name}.rollout.rollout_size, {rows}, "
                    f"got {pieces}"
                )
            if any(each["callback"] == "curriculum" for each in self.roles[name].callbacks):
                raise ValueError(
                    f".collector: roles.{name} has a curriculum, which knows no games of actors"
                )

    def _self_play_fits(self) -> None:
        trained = [role for role in self.roles.values() if isinstance(role, TrainedRole)]
        pooled = [role for role in trained if role.opponent == "pool"]
        if self.self_play is None:
            if pooled:
                raise ValueError(".self_play is null, but a role has the opponent pool")
            return
        if not pooled:
            raise ValueError(".self_play is given, but no role has the opponent pool")
        if len(trained) < 2:
            raise ValueError(".self_play needs two trained roles, one is scripted")
        if self.self_play.team_change and self.training.updates != {"mode": "interleaved"}:
            raise ValueError(
                ".self_play.team_change is another way to write phases; with training.updates "
                f"{dict(self.training.updates)!r} it must be 0, got {self.self_play.team_change}"
            )

    def update_schedules(self) -> dict[str, UpdateSchedule]:
        """One update schedule per role."""
        names = GAMES.resolve(self.game.name).roles
        if self.self_play is not None and self.self_play.team_change:
            change = self.self_play.team_change
            return dict.fromkeys(names, AlternatingPeriodic(2 * change, change, names[0]))
        return parse_updates(self.training.updates, names)


def _same_names(where: str, given: Mapping[str, Any], names: tuple[str, ...]) -> None:
    for name in given:
        if name not in names:
            raise ValueError(unknown_word(f"role in {where}", name, names))
    for name in names:
        if name not in given:
            raise ValueError(f".{where}.{name} is missing; the game has the roles {names}")


def smoke_version(config: TrainerConfig) -> TrainerConfig:
    """The same experiment made as short as possible: every part runs once, in seconds."""
    data = config.to_dict()
    data["training"]["steps"] = 4
    data["evaluation"] |= {"every_steps": 2, "games": 16, "max_moves": 20, "action_games": 8}
    data["logging"]["every_steps"] = 2
    if data["training"]["updates"].get("mode") == "alternating":
        data["training"]["updates"] |= {"phases": 2, "max_steps": 2}
    if data["checkpoint"] is not None:
        data["checkpoint"]["every_steps"] = 2
    if data["collector"] is not None:
        data["collector"]["pieces"] = min(data["collector"]["pieces"], 4)
    if data["self_play"] is not None:
        data["self_play"] |= {"save_steps": 1, "swap_steps": 1, "rating_games": 8}
        data["self_play"]["team_change"] = min(data["self_play"]["team_change"], 1)
    for role in data["roles"].values():
        if role["player"] == "trained":
            rollout = role["rollout"]
            rollout["rollout_size"] = 4
            rollout["max_rollout_steps"] = min(rollout["max_rollout_steps"], 5)
            if "batch_size" in role:
                size = rollout["rollout_size"] * rollout["max_rollout_steps"]
                role["batch_size"] = min(role["batch_size"], size)
            if "replay_buffer" in role:
                role["target_update"]["every_updates"] = 2
                role["replay_buffer"]["size"] = min(role["replay_buffer"]["size"], 10_000)
                rollout |= {"initial_rollout_size": 4, "every_updates": 2}
    return TrainerConfig.read(data)


read_config = TrainerConfig.read
shipped_configs = TrainerConfig.shipped
