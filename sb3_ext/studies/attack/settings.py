"""What an attack may spend: the game, the responder's network and training, the starts.

The same budget is given to every player that is to be compared. As in the host/agent trainer no key
has a default, so a file shows all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal

import torch
from annotated_types import Ge, Len
from pydantic import Field, model_serializer, model_validator

from resgym.game.devices import check_memory
from resgym.game.spec import GameSpec
from resgym.players import make_agent, make_host
from resgym.polynomials.starts import resolve_starts
from sb3_ext.config.checks import shown
from sb3_ext.config.reading import ConfigFile
from sb3_ext.config.sections import (
    Count,
    Fraction,
    Name,
    PositiveCount,
    PositiveFraction,
    PositiveNumber,
    Section,
    Size,
    Version,
    Whole,
    accepted_by,
    checked,
)
from sb3_ext.networks.fields import ExplorationRate, LearningRate, NetArch


def _different(value: Any) -> Any:
    if isinstance(value, list) and len(set(map(str, value))) < len(value):
        raise ValueError(f" must be different from each other, got {shown(value)}")
    return value


class GameSection(Section):
    """The game, its starts included."""

    dimension: PositiveCount = Field(description="number of axes")
    max_num_points: Annotated[int, Whole, Ge(2)] = Field(description="points of a random start")
    max_value: Count = Field(description="starts are uniform on 0..max_value")
    polytope: Literal["dominance", "newton"] = Field(description="which points a move keeps")
    reposition: bool = Field(description="subtract the least coordinate of each axis after a move")
    max_moves: PositiveCount = Field(
        description="games are cut after so many moves, in training and in every measure"
    )
    starts: str | None = Field(
        default=None,
        description="file with a position a line that starts are drawn from; may be left out",
    )

    @model_validator(mode="after")
    def _is_a_game(self) -> GameSection:
        field = "."
        try:
            spec = self.spec()
            field = ".starts: "
            resolve_starts(self.starts, spec)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{field}{error}") from None
        return self

    def spec(self) -> GameSpec:
        """The game as `resgym` knows it."""
        return GameSpec(**self.model_dump(exclude={"max_moves", "starts"}))

    @model_serializer(mode="wrap")
    def _named(self, plain: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        """Without a file as before there were any, so that earlier folders have the same budget."""
        return {name: value for name, value in plain(self).items() if value is not None}


class ResponderSection(Section):
    """The learner that looks for a best response: network, training, repetitions."""

    seeds: Annotated[list[Count], checked(_different), Len(1)] = Field(
        description="one training for each, from nothing"
    )
    updates: Count = Field(description="gradient updates of each training; 0 leaves it untrained")
    num_envs: Size = Field(description="games played at once")
    updates_per_step: PositiveCount = Field(description="updates after each parallel step")
    learning_starts: PositiveCount = Field(description="transitions collected before any update")
    buffer_size: PositiveCount = Field(description="transitions kept")
    batch_size: Size = Field(description="transitions of an update")
    learning_rate: LearningRate = Field(description="number or schedule of updates")
    exploration_rate: ExplorationRate = Field(description="number or schedule of updates")
    gamma: Fraction = Field(description="discount of one move")
    n_steps: Size = Field(description="rewards summed before the value is bootstrapped")
    target_update_interval: PositiveCount = Field(description="updates between target updates")
    tau: PositiveFraction = Field(
        description="weight of the online network in a target update, in (0, 1]"
    )
    max_grad_norm: PositiveNumber = Field(description="the gradient is clipped to this norm")
    reward: Literal["step", "survival", "terminal", "points"] = Field(
        description="what it learns from; step is the length of the game"
    )
    dueling: bool = Field(description="value and advantage heads")
    net_arch: NetArch = Field(
        description="layers after the features extractor, in the net_arch language"
    )
    lookahead_moves: Count = Field(
        description="the finished responders also play with games in the head before every move, "
        "cut after so many moves; 0: not"
    )
    policy_arguments: dict[str, Any] = Field(
        description="arguments of the policy beside net_arch, such as extractor"
    )


class ValidationSection(Section):
    """The starts on which the best version of a responder is chosen; never those of the test."""

    every_updates: PositiveCount = Field(description="updates between two looks")
    games: Size = Field(description="games of a look, from the same starts each time")
    seed: Count = Field(description="fixes these starts; another one than that of the test")


class StartSection(Section):
    """The starts on which everything that is reported is measured."""

    games: Size = Field(description="games against each responder")
    seed: Count = Field(description="fixes the starts")


class ScriptedSection(Section):
    """Responders that cost nothing; the worst of all responders counts."""

    agents: list[Annotated[str, accepted_by(make_agent)]] = Field(
        description="scripted agents that attack a host"
    )
    hosts: list[Annotated[str, accepted_by(make_host)]] = Field(
        description="scripted hosts that attack an agent"
    )


class ExactSection(Section):
    """The truth by search, for players that draw no numbers."""

    starts: PositiveCount = Field(
        description="starts that are searched; the first are those of the test"
    )
    max_positions: PositiveCount = Field(
        description="positions after which a search is given up; its start gives bounds then"
    )


class AttackBudget(ConfigFile):
    """A whole budget; there has to be memory for the replay buffer's observations."""

    folder: ClassVar[str] = "attack"
    field: ClassVar[str] = "budget"

    config_version: Version
    name: Name = Field(description="name of the setting, shown in tables")
    game: GameSection = Field(description="the game and its starts")
    responder: ResponderSection = Field(description="the learner and its training")
    validation: ValidationSection = Field(description="the choice of the best version")
    test: StartSection = Field(description="what is reported")
    scripted: ScriptedSection = Field(description="responders that need no training")
    exact: ExactSection | None = Field(description="search for the truth too, or null")

    @model_validator(mode="after")
    def _parts_fit(self) -> AttackBudget:
        if self.validation.seed == self.test.seed:
            raise ValueError(
                ".validation.seed must differ from test.seed, or the version would be chosen on "
                f"the starts that it is judged by; both are {self.test.seed}"
            )
        count, size = self.responder.buffer_size, 8 * self.game.max_num_points * self.game.dimension
        what = f".responder.buffer_size: {count} transitions"
        check_memory(what, count * size, size, torch.device("cpu"))
        return self


read_budget = AttackBudget.read
shipped_budgets = AttackBudget.shipped
