"""What an attack may spend; every key has to be in its file, so that a file shows all of it."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge
from pydantic import model_validator

from resgym import GameSpec, make_agent, make_host
from resgym.polynomials.starts import resolve_starts
from sb3_ext.config.arguments import check_arguments, check_policy
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


class Game(Section):
    """The game, its starts included."""

    dimension: PositiveCount
    """number of axes"""
    max_num_points: Annotated[int, Whole, Ge(2)]
    """points of a random start"""
    max_value: Count
    """starts are uniform on 0..max_value"""
    polytope: Literal["dominance", "newton"]
    """which points a move keeps"""
    reposition: bool
    """subtract the least coordinate of each axis after a move"""
    max_moves: PositiveCount
    """games are cut after so many moves"""
    starts: str | None = None
    """file of starts; may be left out"""

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

    games: Size
    """how many"""
    seed: Count
    """fixes them"""


class Exact(Section):
    """The truth by search, for players that draw no numbers."""

    starts: PositiveCount
    """starts that are searched, the first are the test's"""
    positions: PositiveCount
    """positions after which a search is given up"""


def _learner(values: Any) -> None:
    check_arguments(DDQN, values, ("n_envs",))
    check_policy(DDQN, "HostPolicy", values.get("policy_kwargs", {}))


class AttackConfig(ConfigFile):
    """A whole budget; give all players that are to be compared the same."""

    folder: ClassVar[str] = "attack"
    field: ClassVar[str] = "budget"

    name: Name
    """name of the setting"""
    game: Game
    """the game and its starts"""
    learner: Annotated[dict[str, Any], accepted_by(_learner)]
    """arguments of DDQN and n_envs, as in configs/ddqn.yml without policy and n_timesteps"""
    reward: Literal["step", "survival", "terminal", "points"]
    """what the learner learns from; step is the length of the game"""
    seeds: list[Count]
    """one training for each, from nothing"""
    updates: Count
    """gradient updates of each training"""
    every: PositiveCount
    """updates between two looks at it"""
    validation: Starts
    """starts that the best version is chosen on"""
    test: Starts
    """starts of everything that is reported"""
    agents: list[Annotated[str, accepted_by(make_agent)]]
    """scripted agents that attack a host"""
    hosts: list[Annotated[str, accepted_by(make_host)]]
    """scripted hosts that attack an agent"""
    lookahead: Count
    """responders also play with games in the head before every move, cut after so many moves; 0:
    not"""
    exact: Exact | None
    """search for the truth too, or null"""

    @model_validator(mode="after")
    def _parts_fit(self) -> AttackConfig:
        if self.validation.seed == self.test.seed:
            raise ValueError(
                f".validation.seed: got {self.test.seed}, the seed of test; expected another, or "
                "the version would be chosen on the starts that it is judged by"
            )
        return self
