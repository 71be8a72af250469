"""The file of a taught player: the positions of each round, and the training."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge, Le, Len
from pydantic import Field, model_validator

from resgym import make_agent, make_host
from resgym.solver.labels import MAX_LABEL_DIMENSION
from resgym.solver.search import Objective
from sb3_ext.config.checks import check_count, shown
from sb3_ext.config.reading import ConfigFile
from sb3_ext.config.sections import (
    Count,
    Fraction,
    Number,
    PositiveCount,
    PositiveNumber,
    Section,
    Size,
    Whole,
    accepted_by,
    checked,
)
from sb3_ext.schedules.schedules import schedule_field

STUDENT = "student"


def _range(low: int, high: int) -> Any:
    """Least and greatest value, both given, within bounds."""

    def check(value: Any) -> Any:
        counts = [check_count("", each, low) for each in value] if isinstance(value, list) else []
        if len(counts) != 2 or not counts[0] <= counts[1] <= high:
            raise ValueError(f" must be [least, greatest] within {low}..{high}, got {shown(value)}")
        return counts

    return checked(check)


Points = Annotated[list[int], _range(2, 64)]
Host = Annotated[str, accepted_by(lambda name: name == STUDENT or make_host(name))]
Agent = Annotated[str, accepted_by(lambda name: name == STUDENT or make_agent(name))]


class Family(Section):
    """Positions of one kind."""

    positions: Annotated[PositiveCount, Le(10**8)]
    """number of positions, different up to shifts, factors and orders of points and axes"""
    points: Points | None = None
    """least and greatest number of points of a start"""
    max_value: Annotated[list[Annotated[int, Whole, Ge(1), Le(10**6)]], Len(1)] = Field([20])
    """largest coordinates; each start draws one"""
    sparsity: Annotated[list[Fraction], Len(1)] = Field([0.0])
    """probabilities of a coordinate 0; each start draws one"""
    exponents: Annotated[list[int], _range(1, 10**6)] | None = None
    """in place of points: least and greatest exponent of as many monomials as axes, the j-th a
    power of x_j, alone or times another variable"""
    alive: Points | None = None
    """least and greatest number of points of a position that is kept"""
    hosts: list[Host] = Field([])
    """hosts of games from the starts, whose positions are used; ``student``: the current player"""
    agents: list[Agent] = Field([])
    """agents of these games; none: every answer is followed"""
    mixed: bool = False
    """draw host and agent for every move, not for every game"""
    moves: Annotated[list[int], _range(0, 1000)] = Field([0, 0])
    """positions after this many moves are kept, at least and at most"""

    @model_validator(mode="after")
    def _fits(self) -> Family:
        if (self.points is None) == (self.exponents is None):
            raise ValueError(".points: give either points or exponents")
        if (self.agents or self.moves[1]) and not self.hosts:
            raise ValueError(".hosts: is missing; agents and moves belong to games")
        return self

    def most(self, dimension: int) -> list[int]:
        """Least and greatest number of points of its positions."""
        return self.alive or [2, self.points[1] if self.points else dimension]


class TeachConfig(ConfigFile):
    """A whole file."""

    folder: ClassVar[str] = "teach"

    seat: Literal["host", "agent"]
    """the seat to teach"""
    dimension: Annotated[int, Whole, Ge(2), Le(MAX_LABEL_DIMENSION)]
    """number of axes"""
    objective: Objective = "depth"
    """quantity that best moves minimise"""
    budget: PositiveCount
    """positions to expand before a position is left out"""
    rounds: Annotated[list[Annotated[list[Family], Len(1)]], Len(1)]
    """families of positions, new ones for each round; student is the player so far"""
    algorithm: str
    """networks and discount, a file in rl_zoo3's form"""
    updates: Count
    """updates of each round; 0: only solve the first positions"""
    batch_size: Size
    """positions of an update"""
    learning_rate: Annotated[Any, schedule_field(units=("updates", "progress"), unit=None)]
    """learning rate of each round, a number or schedule"""
    temperature: PositiveNumber
    """divisor of the values in the choice loss"""
    value_weight: Annotated[float, Number, Ge(0)]
    """weight of the value loss; 0 for nodes or leaves"""
    max_grad_norm: PositiveNumber
    """the gradient is clipped to this norm"""
    every: PositiveCount
    """updates between two measurements"""
    seed: Count
    """seed of everything random"""

    @model_validator(mode="after")
    def _fits(self) -> TeachConfig:
        other = "agents" if self.seat == "host" else "hosts"
        if any(STUDENT in getattr(each, other) for families in self.rounds for each in families):
            raise ValueError(f".rounds: {other}: got {STUDENT}; expected it among the {self.seat}s")
        return self
