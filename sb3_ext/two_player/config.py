"""The configuration of the host/agent trainer: every key, its type, its range, its meaning.

No key has a default, so a configuration file shows all of an experiment. `reading.py` makes these
models from files and dictionaries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from sb3_ext.config.checks import check_count, check_number
from sb3_ext.config.registry import unknown_word
from sb3_ext.config.sections import (
    ConfigError,
    Count,
    ExplorationRate,
    Fraction,
    LearningRate,
    PositiveCount,
    PositiveNumber,
    Section,
    checked,
    read_section,
    registered,
)
from sb3_ext.networks.mlp import expand_net_arch
from sb3_ext.networks.optimizers import OPTIMIZERS
from sb3_ext.two_player.games import GAMES, GameSettings
from sb3_ext.two_player.registries import ALGORITHMS, BUFFERS
from sb3_ext.two_player.update_schedule import AlternatingPeriodic, UpdateSchedule, parse_updates

__all__ = [
    "CONFIG_VERSION",
    "CheckpointSection",
    "ComputeSection",
    "EvaluationSection",
    "LoggingSection",
    "OptimizerSection",
    "ReplayBufferSection",
    "RolloutSection",
    "ScriptedRole",
    "SelfPlaySection",
    "TargetUpdateSection",
    "TrainedRole",
    "TrainerConfig",
    "TrainingSection",
]

CONFIG_VERSION = 1

_RESERVED = {
    "batch_size",
    "buffer_size",
    "device",
    "env",
    "exploration_rate",
    "gamma",
    "gradient_steps",
    "learning_rate",
    "learning_starts",
    "max_grad_norm",
    "policy",
    "policy_kwargs",
    "replay_buffer_class",
    "replay_buffer_kwargs",
    "replay_ratio",
    "seed",
    "target_update_interval",
    "target_update_unit",
    "tau",
    "train_freq",
}


def _algorithm_arguments(value: Any) -> Any:
    taken = _RESERVED & set(value) if isinstance(value, Mapping) else set()
    if taken:
        raise ValueError(
            f": {sorted(taken)[0]!r} is decided by the trainer or by a key of its own, leave it out"
        )
    return value


def _net_arch(value: Any) -> Any:
    try:
        expand_net_arch(value)
    except (TypeError, ValueError) as error:
        raise ValueError(str(error).removeprefix("net_arch")) from None
    return value


def _optional_count(value: Any) -> Any:
    return None if value is None else check_count("", value)


def _optional_number(value: Any) -> Any:
    return None if value is None else check_number("", value, 0, above=True)


class OptimizerSection(Section):
    """The optimiser of a role."""

    name: Annotated[str, registered(OPTIMIZERS)] = Field(
        description="name of the optimiser: adam, adamw, rmsprop, sgd, or one that was registered"
    )
    arguments: dict[str, Any] = Field(description="its arguments beside the learning rate")


class ReplayBufferSection(Section):
    """The replay buffer of a role."""

    name: Annotated[str, registered(BUFFERS)] = Field(
        description="kind of replay buffer: tensor, or one that was registered"
    )
    size: PositiveCount = Field(description="capacity in transitions; memory grows as it fills")
    arguments: dict[str, Any] = Field(description="further arguments of the buffer")


class TargetUpdateSection(Section):
    """When and how far the target network follows."""

    every_updates: PositiveCount = Field(description="updates of the role between target updates")
    tau: Annotated[float, checked(lambda value: check_number("", value, 0, 1, above=True))] = Field(
        description="weight of the online network in a target update, in (0, 1]; 1 copies it"
    )


class RolloutSection(Section):
    """How experience is collected."""

    initial_rollout_size: PositiveCount = Field(
        description="games played before the first update, rounded up to whole rollouts"
    )
    rollout_size: PositiveCount = Field(description="games in parallel in a rollout")
    every_updates: PositiveCount = Field(description="updates of the role between rollouts")
    max_rollout_steps: PositiveCount = Field(description="moves of a rollout in every game")
    reset_each_rollout: bool = Field(
        description="true: each rollout starts new games; false: it goes on with the games in play"
    )


class TrainedRole(Section):
    """A role that learns."""

    player: Literal["trained"] = Field(
        description="trained, the name of a scripted player, or the path of a saved model"
    )
    algorithm: Annotated[str, registered(ALGORITHMS)] = Field(
        description="ddqn, dqn, qrdqn, or one that was registered"
    )
    algorithm_arguments: Annotated[dict[str, Any], checked(_algorithm_arguments)] = Field(
        description="arguments of the algorithm that have no key here, such as double_q"
    )
    policy: str = Field(description="the algorithm's name of a policy, such as HostPolicy")
    policy_arguments: dict[str, Any] = Field(
        description="arguments of the policy beside net_arch and optimizer, such as extractor"
    )
    net_arch: Annotated[list[Any], checked(_net_arch)] = Field(
        description="layers after the features extractor, in the net_arch language"
    )
    optimizer: OptimizerSection = Field(description="the optimiser")
    learning_rate: LearningRate = Field(description="number or schedule of the role's updates")
    exploration_rate: ExplorationRate = Field(
        description="number or schedule, the probability of a random legal action in a rollout"
    )
    batch_size: PositiveCount = Field(description="transitions of an update")
    gamma: Fraction = Field(description="discount of one move")
    max_grad_norm: Annotated[float | None, checked(_optional_number)] = Field(
        description="the gradient is clipped to this norm; null: never"
    )
    replay_buffer: ReplayBufferSection = Field(description="the replay buffer")
    target_update: TargetUpdateSection = Field(description="the target network")
    rollout: RolloutSection = Field(description="the collection of experience")
    reward: str = Field(description="name of a reward of the game, such as terminal")
    opponent: str = Field(
        description="who answers in rollouts: latest (the other role as it is now), pool "
        "(self_play), the name of a scripted player, or the path of a saved model"
    )


class ScriptedRole(Section):
    """A role that does not learn."""

    player: str = Field(description="name of a scripted player, or the path of a saved model")


class TrainingSection(Section):
    """How long, who, and who when."""

    steps: PositiveCount = Field(description="steps; one is an update of every role that is due")
    players: list[str] = Field(description="roles to train, in the order of their updates")
    updates: Any = Field(description="which role is updated when, see update schedules")


class EvaluationSection(Section):
    """The measure of the players."""

    every_steps: PositiveCount = Field(description="steps between evaluations; one more at the end")
    games: PositiveCount = Field(
        description="games of each pairing, from the same starts each time"
    )
    max_moves: PositiveCount = Field(description="games are cut after so many moves")
    seed: Count = Field(description="fixes the starts, independent of the seed of training")
    action_games: PositiveCount = Field(description="games in which actions are counted")
    keep_best: bool = Field(description="keep the best model of each role, see the documentation")
    opponents: dict[str, list[str]] = Field(
        description="per role the scripted players that it is measured against"
    )


class SelfPlaySection(Section):
    """The pool of earlier opponents and their ratings; key names as in ML-Agents."""

    save_steps: PositiveCount = Field(description="steps between two snapshots")
    team_change: Count = Field(
        description="steps after which the other role learns; 0: as training.updates says"
    )
    swap_steps: PositiveCount = Field(description="steps between two draws of the opponent")
    window: PositiveCount = Field(description="snapshots kept of each role, the newest ones")
    play_against_latest_model_ratio: Fraction = Field(
        description="part of the games that meet the newest opponent, not one from the pool"
    )
    initial_elo: PositiveNumber = Field(description="rating of a role at the start")
    rating_games: PositiveCount = Field(description="games of a rating match")


class LoggingSection(Section):
    """What is written while training."""

    every_steps: PositiveCount = Field(description="steps between two lines of metrics")
    layers: bool = Field(description="mean and deviation of every layer's weights and gradients")
    tensorboard: bool = Field(description="write TensorBoard files into the run's folder too")


class CheckpointSection(Section):
    """What survives a crash."""

    every_steps: PositiveCount = Field(description="steps between checkpoints; one more at the end")
    keep: PositiveCount = Field(description="newest checkpoints kept")


class ComputeSection(Section):
    """Where the work is done."""

    device: str = Field(description="cpu, cuda, cuda:1, ... or auto")
    torch_threads: Annotated[int | None, checked(_optional_count)] = Field(
        description="threads of a tensor operation while training; null: leave as it is"
    )


def _read_game(data: Any) -> GameSettings:
    if isinstance(data, GameSettings):
        return data
    if not isinstance(data, Mapping) or "name" not in data:
        raise ConfigError(f"game must be a mapping with the key name, got {data!r}")
    try:
        kind = GAMES.resolve(data["name"])
    except (TypeError, ValueError) as error:
        raise ConfigError(f"game.name: {error}") from None
    return read_section(kind.Settings, data, "game")


def _read_role(name: str, data: Any) -> TrainedRole | ScriptedRole:
    if isinstance(data, (TrainedRole, ScriptedRole)):
        return data
    trained = isinstance(data, Mapping) and data.get("player", "trained") == "trained"
    where = f"roles.{name}"
    return (
        read_section(TrainedRole, data, where)
        if trained
        else read_section(ScriptedRole, data, where)
    )


def _read_roles(data: Any) -> Any:
    if not isinstance(data, Mapping):
        raise ValueError(f" must be a mapping from role to its section, got {data!r}")
    return {str(name): _read_role(str(name), section) for name, section in data.items()}


class TrainerConfig(Section):
    """A whole configuration."""

    config_version: Literal[1] = Field(description="version of this format")
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")] = Field(
        description="name of the experiment, part of its folder's name"
    )
    seed: Count = Field(description="fixes everything random in training")
    game: Annotated[Any, checked(_read_game)] = Field(description="the game and its sizes")
    training: TrainingSection = Field(description="how long, who, and who when")
    evaluation: EvaluationSection = Field(description="the measure of the players")
    self_play: SelfPlaySection | None = Field(description="pool of earlier opponents, or null")
    logging: LoggingSection = Field(description="what is written while training")
    checkpoint: CheckpointSection | None = Field(description="checkpoints, or null for none")
    compute: ComputeSection = Field(description="where the work is done")
    roles: Annotated[dict[str, Any], checked(_read_roles)] = Field(
        description="per role how it learns, or who plays it"
    )

    @model_validator(mode="after")
    def _parts_fit(self) -> TrainerConfig:
        names = GAMES.resolve(self.game.name).roles
        _same_names("roles", self.roles, names)
        _same_names("evaluation.opponents", self.evaluation.opponents, names)
        players = self.training.players
        for player in players:
            if player not in self.trained_roles:
                raise ConfigError(
                    f"training.players: {unknown_word('trained role', player, self.trained_roles)}"
                )
        if not players or len(set(players)) < len(players):
            raise ConfigError(f"training.players must name each role once, got {players}")
        try:
            schedules = parse_updates(self.training.updates, names)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"training.updates: {error}") from None
        self._self_play_fits(schedules)
        return self

    def _self_play_fits(self, schedules: Mapping[str, UpdateSchedule]) -> None:
        trained = [role for role in self.roles.values() if isinstance(role, TrainedRole)]
        pooled = [role for role in trained if role.opponent == "pool"]
        if self.self_play is None:
            if pooled:
                raise ConfigError("self_play is null, but a role has the opponent pool")
            return
        if not pooled:
            raise ConfigError("self_play is given, but no role has the opponent pool")
        if len(trained) < 2:
            raise ConfigError("self_play needs two trained roles, one is scripted")
        if self.self_play.team_change and self.training.updates != {"mode": "interleaved"}:
            raise ConfigError(
                "self_play.team_change is another way to write phases; with training.updates "
                f"{dict(self.training.updates)!r} it must be 0, got {self.self_play.team_change}"
            )

    @property
    def trained_roles(self) -> list[str]:
        """Names of the roles that learn."""
        return [name for name, role in self.roles.items() if isinstance(role, TrainedRole)]

    def update_schedules(self) -> dict[str, UpdateSchedule]:
        """One update schedule per role."""
        names = GAMES.resolve(self.game.name).roles
        if self.self_play is not None and self.self_play.team_change:
            change = self.self_play.team_change
            return dict.fromkeys(names, AlternatingPeriodic(2 * change, change, names[0]))
        return parse_updates(self.training.updates, names)

    def to_dict(self) -> dict[str, Any]:
        """Plain data that `read_config` reads back to an equal configuration."""
        data = self.model_dump()
        data["game"] = self.game.model_dump()
        data["roles"] = {name: role.model_dump() for name, role in self.roles.items()}
        return data


def _same_names(where: str, given: Mapping[str, Any], names: tuple[str, ...]) -> None:
    for name in given:
        if name not in names:
            raise ConfigError(unknown_word(f"role in {where}", name, names))
    for name in names:
        if name not in given:
            raise ConfigError(f"{where}.{name} is missing; the game has the roles {names}")
