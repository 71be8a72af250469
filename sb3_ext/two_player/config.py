"""The configuration of the host/agent trainer: every key, its type, its range, its meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le, Len
from pydantic import BeforeValidator, ValidationInfo, model_validator

from sb3_ext.config.checks import ConfigError, errors_of, shown
from sb3_ext.config.sections import (
    ConfigFile,
    Count,
    Fraction,
    Name,
    PositiveCount,
    PositiveNumber,
    Section,
    Size,
    Switches,
    Whole,
    read_as,
)
from sb3_ext.two_player.hironaka import ROLES, GameSection
from sb3_ext.two_player.kinds import learner_of
from sb3_ext.two_player.learner import TrainedRole
from sb3_ext.types import Data


class ScriptedRole(Section):
    """A role that does not learn."""

    player: str
    """name of a scripted player, or the path of a saved model"""


class UpdatesSection(Section):
    """The steps of every period in which each role is updated."""

    period: PositiveCount
    """steps after which the windows repeat"""
    host: Annotated[list[Count], Len(2, 2)]
    """steps [start, stop] of each period in which the host is updated, stop excluded"""
    agent: Annotated[list[Count], Len(2, 2)]
    """the same for the agent"""
    fresh: bool = False
    """restart a role at the start of each of its windows, with new networks and no experience
    (default false)"""

    @model_validator(mode="after")
    def _windows_fit(self) -> UpdatesSection:
        for role in ROLES:
            start, stop = getattr(self, role)
            if not start < stop <= self.period:
                raise ValueError(
                    f".{role}: got {[start, stop]}; expected start < stop <= period, {self.period}"
                )
        return self

    def is_due(self, role: str, step: int) -> bool:
        """Whether a role is updated in a step, counted from 0."""
        start, stop = getattr(self, role)
        return bool(start <= step % self.period < stop)


class TrainingSection(Section):
    """How long, who, and who when."""

    steps: PositiveCount
    """number of steps; a step is one update of each role whose turn it is"""
    players: list[Literal["host", "agent"]]
    """roles to train, in the order of their updates"""
    updates: UpdatesSection | None
    """whose turn it is; null: both roles in every step"""


class OpponentsSection(Section):
    """Fixed opponents."""

    host: list[str]
    """players that the host is measured against"""
    agent: list[str]
    """players that the agent is measured against"""


class EvaluationSection(Section):
    """The measure of the players."""

    every_steps: PositiveCount
    """steps between evaluations; one more follows the last step"""
    games: Size
    """games of each pairing, from the same starts each time"""
    max_moves: PositiveCount
    """longest game in moves; longer ones are cut"""
    seed: Count
    """seed of the starts; the seed of training does not change them"""
    action_games: Size
    """games in which actions are counted"""
    keep_best: bool
    """keep the version of each role with the best score"""
    opponents: OpponentsSection
    """fixed opponents of each role"""


class SelfPlaySection(Section):
    """The pool of earlier opponents and their ratings; key names as in ML-Agents."""

    save_steps: PositiveCount
    """steps between two snapshots"""
    team_change: Count
    """steps that one role learns before the other takes over; 0: as training.updates says"""
    swap_steps: PositiveCount
    """steps between two draws of the opponent"""
    window: PositiveCount
    """number of snapshots kept of each role, the newest ones"""
    play_against_latest_model_ratio: Fraction
    """share of the games against the newest opponent; the rest meet the one drawn from the pool"""
    initial_elo: PositiveNumber
    """rating of a role at the start"""
    rating_games: Size
    """games of a rating match"""


class LoggingSection(Section):
    """What is written while training."""

    every_steps: PositiveCount
    """steps between two lines of metrics"""
    layers: bool
    """log mean and standard deviation of the weights and gradients of every layer"""
    tensorboard: bool
    """write TensorBoard files into the run's folder too"""


class CheckpointSection(Section):
    """What survives a crash."""

    every_steps: PositiveCount
    """steps between checkpoints; one more follows the last step"""
    keep: PositiveCount
    """number of checkpoints kept, the newest ones"""


class ComputeSection(Switches):
    """Where the work is done."""

    device: str
    """cpu, cuda, cuda:1, ... or auto"""
    torch_threads: Annotated[int, Whole, Ge(1), Le(1024)] | None
    """threads of a tensor operation while training; null: PyTorch's setting"""


def _read_role(data: Any, info: ValidationInfo) -> TrainedRole | ScriptedRole:
    where = f"roles.{info.field_name}"
    if not isinstance(data, Mapping):
        raise ConfigError(f"{where} must be a mapping, got {shown(data)}")
    if data.get("player", "trained") != "trained":
        return read_as(ScriptedRole, data, where)
    if "algorithm" not in data:  # no other key can be judged
        raise ConfigError(f"{where}.algorithm is missing")
    with errors_of(f"{where}.algorithm"):
        kind = learner_of(data["algorithm"]).Section
    return read_as(kind, data, where)


RoleSection = Annotated[Any, BeforeValidator(_read_role)]


class RolesSection(Section):
    """How each role learns, or who plays it."""

    host: RoleSection
    """the host"""
    agent: RoleSection
    """the agent"""


class TrainerConfig(ConfigFile):
    """A whole configuration."""

    folder = "two_player"

    config_version: Literal[1]
    """version of this format"""
    name: Name
    """name of the experiment, part of its folder's name"""
    seed: Count
    """seed of everything random in training"""
    game: GameSection
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
    shared_encoder: bool = False
    """let both roles share the weights of their features extractors that have the same name and
    shape (default false)"""
    roles: RolesSection
    """how each role learns, or who plays it"""

    @model_validator(mode="after")
    def _parts_fit(self) -> TrainerConfig:
        players = self.training.players
        trained = self.trained
        if not players or len(set(players)) < len(players) or not {*players} <= trained.keys():
            raise ValueError(
                f".training.players: got {players}; expected roles that learn, each once: "
                f"{', '.join(trained)}"
            )
        pooled = any(role.opponent == "pool" for role in trained.values())
        if pooled != (self.self_play is not None):
            raise ValueError(
                f".self_play: got {shown(self.self_play and self.self_play.to_dict())}; expected "
                "it if a role has the opponent pool, else null"
            )
        if len(trained) < 2 and (pooled or self.shared_encoder):
            key = "self_play" if pooled else "shared_encoder"
            raise ValueError(f".{key} needs two roles that learn, one is scripted")
        if self.self_play is not None and self.self_play.team_change and self.training.updates:
            raise ValueError(
                f".self_play.team_change: got {self.self_play.team_change}; expected 0 beside "
                "training.updates"
            )
        return self

    @property
    def trained(self) -> dict[str, Any]:
        """Sections of the roles that learn, by name."""
        return {name: each for name, each in self.roles if isinstance(each, TrainedRole)}

    @property
    def updates(self) -> UpdatesSection | None:
        """Whose turn it is in which step; None: always both."""
        if self.self_play is None or not self.self_play.team_change:
            return self.training.updates
        change = self.self_play.team_change
        return UpdatesSection(period=2 * change, host=[0, change], agent=[change, 2 * change])


_SMOKE = {
    "action_games": 8,
    "batch_size": 20,
    "every_steps": 2,
    "every_updates": 2,
    "games": 16,
    "initial_rollout_size": 4,
    "max_moves": 20,
    "max_rollout_steps": 5,
    "rating_games": 8,
    "rollout_size": 4,
    "save_steps": 1,
    "size": 10_000,
    "steps": 4,
    "swap_steps": 1,
    "team_change": 1,
}
"""The most that a key of this name may be, in whatever section."""


def smoke_version(config: TrainerConfig) -> TrainerConfig:
    """The same experiment made as short as possible: every part runs once, in seconds."""

    def shorten(data: Data) -> None:
        for key, value in data.items():
            if isinstance(value, dict):
                shorten(value)
            elif key in _SMOKE:
                data[key] = min(value, _SMOKE[key])

    data = config.to_dict()
    shorten(data)
    if data["training"]["updates"]:
        data["training"]["updates"] |= {"period": 2, "host": [0, 1], "agent": [1, 2]}
    return TrainerConfig.read(data)


read_config = TrainerConfig.read
shipped_configs = TrainerConfig.shipped
