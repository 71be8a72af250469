"""The configuration of the rounds: every key, its type, its range, its meaning."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge
from pydantic import Field, model_validator

from resgym.game.spec import Role
from resgym.players import resolve_player
from sb3_ext.config.reading import ConfigFile
from sb3_ext.config.sections import (
    Count,
    Name,
    Number,
    PositiveCount,
    PositiveNumber,
    Section,
    Size,
    Version,
    errors_of,
)
from sb3_ext.studies.attack.settings import AttackBudget, read_budget


class ModelSection(Section):
    """Whom the player asks."""

    ask: str = Field(
        description="module:name of a function of a list of chats that returns as many texts"
    )
    arguments: dict[str, Any] = Field(
        description="what it is called with by name beside the chats, such as a model's name"
    )


class PlayerSection(Section):
    """How the player asks."""

    retries: Count = Field(description="how often it asks again about a position")
    on_unreadable: str = Field(
        description="then: first (the first legal action), error (stop) or the name of a player"
    )


class SampleSection(Section):
    """The games to learn from."""

    opponent: str = Field(description="name of the player in the other seat")
    games: Size = Field(description="games of a round")


class ExportSection(Section):
    """The lines to learn from."""

    answers: Literal["optimal", "played"] = Field(
        description="optimal: every labelled decision, with an optimal answer; played: only those "
        "in which the player's own answer was optimal"
    )
    label_budget: PositiveCount = Field(
        description="positions expanded for a label; what needs more has none and is left out"
    )


class WaitSection(Section):
    """How long the outside training may take."""

    seconds: Annotated[float, Number, Ge(0)] = Field(
        description="before the command gives up, which loses nothing; 0 looks once"
    )
    look_every_seconds: PositiveNumber = Field(description="between two looks for the file")


class TextConfig(ConfigFile):
    """A whole configuration."""

    folder: ClassVar[str] = "text"

    config_version: Version
    name: Name = Field(description="name of the experiment")
    seed: Count = Field(description="fixes the starts and players that draw")
    role: Role = Field(description="the seat of the player that speaks")
    rounds: PositiveCount = Field(description="times that all stages are gone through")
    model: ModelSection = Field(description="whom the player asks in the first round")
    player: PlayerSection = Field(description="how it asks")
    sample: SampleSection = Field(description="the games to learn from")
    export: ExportSection = Field(description="the lines to learn from")
    wait: WaitSection = Field(description="how long the outside training may take")
    budget: Any = Field(
        description="a budget of python -m sb3_ext.attack: its game is what is played, its test, "
        "scripted and exact are how the player is measured"
    )
    settings: list[str] = Field(description="changes of it, such as exact.starts=20")

    @model_validator(mode="after")
    def _parts_fit(self) -> TextConfig:
        spec = self.measures().game.spec()
        other: Role = "agent" if self.role == "host" else "host"
        with errors_of(".sample.opponent", ValueError):
            resolve_player(self.sample.opponent, other, spec)
        if self.player.on_unreadable not in ("first", "error"):
            with errors_of(".player.on_unreadable", ValueError):
                resolve_player(self.player.on_unreadable, self.role, spec)
        return self

    def measures(self) -> AttackBudget:
        """The budget with its changes."""
        with errors_of(".budget", ValueError):
            return read_budget(self.budget, self.settings)
