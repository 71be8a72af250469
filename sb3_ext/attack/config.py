"""What an attack may spend; every key has to be in its file, so that a file shows all of it."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge
from pydantic import Field, model_validator

from resgym.game.spec import GameSpec
from resgym.players import make_agent, make_host
from resgym.polynomials.starts import resolve_starts
from sb3_ext.config.reading import ConfigFile
from sb3_ext.config.sections import (
    Count,
    Name,
    PositiveCount,
    Section,
    Size,
    Whole,
    accepted_by,
    errors_of,
)
from sb3_ext.ddqn import DDQN
from sb3_ext.train.config_files import check_hyperparameters


class Game(Section):
    """The game, its starts included."""

    dimension: PositiveCount = Field(description="number of axes")
    max_num_points: Annotated[int, Whole, Ge(2)] = Field(description="points of a random start")
    max_value: Count = Field(description="starts are uniform on 0..max_value")
    polytope: Literal["dominance", "newton"] = Field(description="which points a move keeps")
    reposition: bool = Field(description="subtract the least coordinate of each axis after a move")
    max_moves: PositiveCount = Field(description="games are cut after so many moves")
    starts: str | None = Field(default=None, description="file of starts; may be left out")

    @model_validator(mode="after")
    def _is_a_game(self) -> Game:
        with errors_of(".starts" if self.starts else "", ValueError):
            resolve_starts(self.starts, self.spec())
        return self

    def spec(self) -> GameSpec:
        """The game as `resgym` knows it."""
        return GameSpec(**self.model_dump(exclude={"max_moves", "starts"}))


class Starts(Section):
    """Starts that something is measured on."""

    games: Size = Field(description="how many")
    seed: Count = Field(description="fixes them")


class Exact(Section):
    """The truth by search, for players that draw no numbers."""

    starts: PositiveCount = Field(description="starts that are searched, the first are the test's")
    positions: PositiveCount = Field(description="positions after which a search is given up")


class AttackConfig(ConfigFile):
    """A whole budget; give all players that are to be compared the same."""

    folder: ClassVar[str] = "attack"
    field: ClassVar[str] = "budget"

    name: Name = Field(description="name of the setting")
    game: Game = Field(description="the game and its starts")
    learner: dict[str, Any] = Field(
        description="arguments of DDQN and n_envs, as in configs/ddqn.yml without policy and "
        "n_timesteps"
    )
    reward: Literal["step", "survival", "terminal", "points"] = Field(
        description="what the learner learns from; step is the length of the game"
    )
    seeds: list[Count] = Field(description="one training for each, from nothing")
    updates: Count = Field(description="gradient updates of each training")
    every: PositiveCount = Field(description="updates between two looks at it")
    validation: Starts = Field(description="starts that the best version is chosen on")
    test: Starts = Field(description="starts of everything that is reported")
    agents: list[Annotated[str, accepted_by(make_agent)]] = Field(
        description="scripted agents that attack a host"
    )
    hosts: list[Annotated[str, accepted_by(make_host)]] = Field(
        description="scripted hosts that attack an agent"
    )
    lookahead: Count = Field(
        description="responders also play with games in the head before every move, cut after so "
        "many moves; 0: not"
    )
    exact: Exact | None = Field(description="search for the truth too, or null")

    @model_validator(mode="after")
    def _parts_fit(self) -> AttackConfig:
        if self.validation.seed == self.test.seed:
            raise ValueError(
                f".validation.seed: got {self.test.seed}, the seed of test; expected another, or "
                "the version would be chosen on the starts that it is judged by"
            )
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f".seeds: got {self.seeds}; expected different ones")
        given = {"policy": "HostPolicy", "n_timesteps": 1, **self.learner}
        check_hyperparameters(given, DDQN, "learner")
        return self
