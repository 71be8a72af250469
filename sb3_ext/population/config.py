"""The configuration of a population: every key, its type, its range, its meaning."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge, Le, Len
from pydantic import Field, model_validator

from sb3_ext.config.checks import shown
from sb3_ext.config.reading import ConfigFile, with_values
from sb3_ext.config.sections import (
    ConfigError,
    Count,
    Fraction,
    Name,
    Number,
    PositiveCount,
    PositiveNumber,
    Section,
    Size,
    Version,
    Whole,
)
from sb3_ext.two_player.config import TrainerConfig
from sb3_ext.two_player.learner import TrainedRole

NOT_EXPLORED = ("net_arch", "optimizer", "policy_arguments", "replay_buffer", "rollout")
"""Keys of a role that its checkpoint depends on, so that a member could not take it over."""


class LeagueSection(Section):
    """Earlier versions of all members: who is kept, who is met."""

    games: Size = Field(description="games of each pairing of a host and an agent")
    keep: PositiveCount = Field(
        description="versions of each role that stay for being the newest, and as many for the "
        "highest Elo; every member's latest and best stay too"
    )
    opponents: Literal["uniform", "pfsp"] = Field(
        description="how opponents are drawn: all alike, or those more often that are not beaten"
    )
    power: PositiveNumber = Field(
        description="of pfsp: an opponent that is beaten with probability p has the weight "
        "(1 - p)^power"
    )
    draws: PositiveCount = Field(description="opponents drawn for each role of a member in a round")
    latest_share: Fraction = Field(
        description="part of the games that meet the member's own other role as it is now; 1: all"
    )


class ExploitSection(Section):
    """Truncation selection."""

    share: Annotated[float, Number, Ge(0), Le(0.5)] = Field(
        description="part of the members, the worst, that copy one of as many best; 0: nobody, "
        "else at least one"
    )


class ExploreRule(Section):
    """How a hyperparameter changes."""

    factors: Annotated[list[PositiveNumber], Len(1)] = Field(
        description="one of them is drawn and multiplied with the value"
    )
    low: PositiveNumber = Field(description="smallest value")
    high: PositiveNumber = Field(description="largest value")


class PopulationConfig(ConfigFile):
    """A whole configuration."""

    folder: ClassVar[str] = "population"

    config_version: Version
    name: Name = Field(description="name of the experiment, part of its folder's name")
    seed: Count = Field(description="fixes everything random; member m trains with seed + m")
    members: Annotated[int, Whole, Ge(1), Le(10_000)] = Field(description="hosts, and agents")
    rounds: PositiveCount = Field(description="times that all train, play each other and select")
    steps_per_round: PositiveCount = Field(description="steps of the two-player trainer in a round")
    two_player: Any = Field(
        description="what members begin with: a configuration of the two-player trainer"
    )
    settings: list[str] = Field(description="changes of it, such as roles.host.gamma=0.9")
    league: LeagueSection = Field(description="earlier versions of all members")
    exploit: ExploitSection = Field(description="who copies whom")
    explore: dict[str, ExploreRule] = Field(
        description="per hyperparameter, by its name in two_player, how it changes"
    )

    @model_validator(mode="after")
    def _parts_fit(self) -> PopulationConfig:
        base = self.base()
        plain = base.to_dict()
        if base.collector is not None and base.collector.actors:
            raise ConfigError(
                "two_player: collector.actors must be 0, members take turns on those of --actors; "
                f"got {base.collector.actors}"
            )
        for role, section in base.roles.items():
            if not isinstance(section, TrainedRole):
                raise ConfigError(f"two_player: roles.{role} has to learn, it is {section.player}")
            if section.opponent != "latest":
                raise ConfigError(
                    f"two_player: roles.{role}.opponent must be latest, the league is who else "
                    f"plays; got {section.opponent}"
                )
        for name, rule in self.explore.items():
            value = value_of(plain, name)
            if not rule.low <= value <= rule.high:
                raise ConfigError(
                    f"explore.{name}: low <= value <= high must hold, got {rule.low:g}, {value:g}, "
                    f"{rule.high:g}"
                )
            for end in (rule.low, rule.high):
                self.base({name: type(value)(end)})
        return self

    def base(self, hyperparameters: dict[str, Any] | None = None, member: int = 0) -> TrainerConfig:
        """The configuration of a member with these values.

        Raises:
            ConfigError: a value is not allowed.
        """
        try:
            data = TrainerConfig.read(self.two_player, self.settings).to_dict()
            own = {"seed": self.seed + member, **(hyperparameters or {})}
            return TrainerConfig.read(with_values(data, own.items()))
        except ConfigError as error:
            raise ConfigError(f"two_player: {error}") from None

    def resolved(self) -> dict[str, Any]:
        """Plain data that no longer depends on other files."""
        return self.to_dict() | {"two_player": self.base().to_dict(), "settings": []}


def value_of(data: Any, name: str) -> int | float:
    """The number of a dotted name that may be explored; else a ConfigError."""
    parts = name.split(".")
    if len(parts) < 3 or parts[0] != "roles" or parts[2] in NOT_EXPLORED:
        raise ConfigError(
            f"explore.{name} must be roles.<role>.<key>, and no key of {', '.join(NOT_EXPLORED)}"
        )
    for part in parts:
        data = data.get(part) if isinstance(data, dict) else None
    if isinstance(data, bool) or not isinstance(data, (int, float)):
        raise ConfigError(f"explore.{name} must be a number in two_player, got {shown(data)}")
    return data
