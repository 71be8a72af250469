"""The budget of an attack; a file must set every key, so that it shows the whole budget."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import model_validator

from resgym import make_agent, make_host
from resgym.polynomials.starts import resolve_starts
from sb3_ext.config.checks import check_arguments, check_policy, errors_of
from sb3_ext.config.sections import (
    ConfigFile,
    Count,
    Name,
    PositiveCount,
    Section,
    Size,
    accepted_by,
)
from sb3_ext.ddqn import DDQN
from sb3_ext.two_player.hironaka import GameSizes
from sb3_ext.types import Arguments


class Game(GameSizes):
    """The game, its starts included."""

    max_moves: PositiveCount
    """moves after which a game is cut"""

    @model_validator(mode="after")
    def _is_a_game(self) -> Game:
        with errors_of(".starts" if self.starts else "", ValueError):
            resolve_starts(self.starts, self.spec())
        return self


class Starts(Section):
    """The starts of a measurement."""

    games: Size
    """number of games"""
    seed: Count
    """seed of the games"""


class Exact(Section):
    """The exact worst case by search, for deterministic players."""

    starts: PositiveCount
    """number of starts to search, beginning with those of the test"""
    positions: PositiveCount
    """positions before a search is given up"""


def _learner(values: Any) -> None:
    check_arguments(DDQN, values, ("n_envs",))
    check_policy(DDQN, "HostPolicy", values.get("policy_kwargs", {}))


class AttackConfig(ConfigFile):
    """A whole budget; compare players only under the same budget."""

    folder = "attack"

    name: Name
    """name of the setting"""
    game: Game
    """the game and its starts"""
    learner: Annotated[Arguments, accepted_by(_learner)]
    """arguments of DDQN and n_envs, as in configs/ddqn.yml without policy and n_timesteps"""
    reward: Literal["step", "survival", "terminal", "points"]
    """reward of the learner; step is the length of the game"""
    seeds: list[Count]
    """seeds; one training from random weights for each"""
    updates: Count
    """gradient updates of each training"""
    every: PositiveCount
    """updates between two validations"""
    validation: Starts
    """starts that select the best version"""
    test: Starts
    """starts of the reported figures"""
    agents: list[Annotated[str, accepted_by(make_agent)]]
    """scripted agents that attack a host"""
    hosts: list[Annotated[str, accepted_by(make_host)]]
    """scripted hosts that attack an agent"""
    lookahead: Count
    """moves to simulate before every move, as a second form of each responder; 0: none"""
    exact: Exact | None
    """the exact worst case, or null"""

    @model_validator(mode="after")
    def _parts_fit(self) -> AttackConfig:
        if self.validation.seed == self.test.seed:
            raise ValueError(
                f".validation.seed: got {self.test.seed}, the seed of test; expected another: "
                "the test starts must not select the version"
            )
        return self
