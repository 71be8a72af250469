"""The configuration of the host/agent trainer: every key, its type, its range, its meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from annotated_types import Ge, Le
from pydantic import model_validator

import sb3_ext.two_player.hironaka
import sb3_ext.two_player.off_policy
import sb3_ext.two_player.on_policy  # noqa: F401  # what names find
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
from sb3_ext.ddqn.algorithms import ALGORITHMS
from sb3_ext.two_player.games import GAMES
from sb3_ext.two_player.learner import TrainedRole, learner_of
from sb3_ext.two_player.turns import Alternating, Turns, Windows, read_turns


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
        kind = learner_of(data["algorithm"]).Section
    return read_section(kind, data, where)


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
        _same_names("roles", self.roles, self.role_names)
        _same_names("evaluation.opponents", self.evaluation.opponents, self.role_names)
        players, trained = self.training.players, self.trained
        for player in players:
            if player not in trained:
                unknown = unknown_word("trained role", player, trained)
                raise ValueError(f".training.players: {unknown}")
        if not players or len(set(players)) < len(players):
            raise ValueError(f".training.players must name each role once, got {players}")
        with errors_of(".training.updates", ValueError):
            turns = read_turns(self.training.updates, self.role_names)
            if isinstance(turns, Alternating) and len(players) < 2:
                raise ValueError(f"alternating needs both roles in training.players, got {players}")
        pooled = [name for name, role in trained.items() if role.opponent == "pool"]
        if bool(pooled) != bool(self.self_play):
            raise ValueError(
                f".self_play: got {shown(self.self_play and self.self_play.to_dict())}; expected "
                "it if a role has the opponent pool, else null"
            )
        if self.self_play is not None:
            if len(trained) < 2:
                raise ValueError(".self_play needs two trained roles, one is scripted")
            if self.self_play.team_change and type(turns) is not Turns:
                raise ValueError(
                    f".self_play.team_change: got {self.self_play.team_change}; expected 0, as "
                    "training.updates is not interleaved"
                )
        actors = self.collector is not None and self.collector.actors > 0
        if self.shared_encoder and (len(trained) < 2 or actors):
            given = "actors" if len(trained) == 2 else "a scripted role"
            raise ValueError(f".shared_encoder must be false with {given}")
        for name, role in trained.items() if actors else ():
            self._collector_fits(f".roles.{name}", role)
        return self

    def _collector_fits(self, where: str, role: Any) -> None:
        if not hasattr(ALGORITHMS.resolve(role.algorithm), "collects_tensors"):
            raise ValueError(
                f"{where}.algorithm: got {role.algorithm}; expected ddqn with collector.actors"
            )
        assert self.collector is not None
        if self.collector.pieces > role.rollout.rollout_size:
            raise ValueError(
                f".collector.pieces: got {self.collector.pieces}; expected at most "
                f"{where[1:]}.rollout.rollout_size, {role.rollout.rollout_size}"
            )
        if any(each["callback"] == "curriculum" for each in role.callbacks):
            raise ValueError(f"{where}.callbacks: got a curriculum, which knows no games of actors")

    @property
    def role_names(self) -> tuple[str, str]:
        """Of the game, the first one first."""
        return GAMES.resolve(self.game.name).roles

    @property
    def trained(self) -> dict[str, Any]:
        """Sections of the roles that learn, by name."""
        return {name: each for name, each in self.roles.items() if isinstance(each, TrainedRole)}

    def turns(self) -> Turns:
        """Whose turn it is in which step."""
        if self.self_play is not None and self.self_play.team_change:
            change, (first, second) = self.self_play.team_change, self.role_names
            return Windows(2 * change, {first: (0, change), second: (change, 2 * change)})
        return read_turns(self.training.updates, self.role_names)


def _same_names(where: str, given: Mapping[str, Any], names: tuple[str, ...]) -> None:
    for name in given:
        if name not in names:
            raise ValueError(unknown_word(f"role in {where}", name, names))
    for name in names:
        if name not in given:
            raise ValueError(f".{where}.{name} is missing; the game has the roles {names}")


_SMOKE = {
    "training.steps": 4,
    "training.updates.phases": 2,
    "training.updates.max_steps": 2,
    "evaluation.every_steps": 2,
    "evaluation.games": 16,
    "evaluation.max_moves": 20,
    "evaluation.action_games": 8,
    "logging.every_steps": 2,
    "checkpoint.every_steps": 2,
    "collector.pieces": 4,
    "self_play.save_steps": 1,
    "self_play.swap_steps": 1,
    "self_play.rating_games": 8,
    "self_play.team_change": 1,
}
_SMOKE_ROLE = {
    "replay_buffer.size": 10_000,
    "target_update.every_updates": 2,
    "rollout.rollout_size": 4,
    "rollout.max_rollout_steps": 5,
    "rollout.initial_rollout_size": 4,
    "rollout.every_updates": 2,
}


def smoke_version(config: TrainerConfig) -> TrainerConfig:
    """The same experiment made as short as possible: every part runs once, in seconds."""
    data = config.to_dict()
    own = {
        f"roles.{role}.{key}": most for role in data["roles"] for key, most in _SMOKE_ROLE.items()
    }
    for name, most in (_SMOKE | own).items():
        *parents, last = name.split(".")
        section: Any = data
        for key in parents:
            section = section.get(key) or {}
        if last in section:
            section[last] = min(section[last], most)
    for role in data["roles"].values():
        if "batch_size" in role:  # PPO warns of batches that are cut
            size = role["rollout"]["rollout_size"] * role["rollout"]["max_rollout_steps"]
            role["batch_size"] = min(role["batch_size"], size)
    return TrainerConfig.read(data)


read_config = TrainerConfig.read
shipped_configs = TrainerConfig.shipped
