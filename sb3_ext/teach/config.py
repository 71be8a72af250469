"""The file of a taught player: what is solved, round by round, and how it is taught."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge, Le, Len
from pydantic import Field, model_validator

from resgym.solver.labels import MAX_LABEL_DIMENSION
from resgym.solver.search import Objective
from sb3_ext.config.reading import ConfigFile
from sb3_ext.config.sections import (
    Count,
    Number,
    PositiveCount,
    PositiveNumber,
    Section,
    Size,
    Whole,
)
from sb3_ext.networks.fields import schedule_field
from sb3_ext.teach.positions import STUDENT, Round


class Test(Section):
    """Random starts that a taught player is measured from at the end."""

    starts: Count = Field(description="how many; 0: it is not measured")
    points: PositiveCount = Field(description="of each")
    max_value: PositiveCount = Field(description="largest coordinate")
    positions: PositiveCount = Field(description="looked at for a start before it is given up")


class TeachConfig(ConfigFile):
    """A whole file."""

    folder: ClassVar[str] = "teach"

    seat: Literal["host", "agent"] = Field(description="who is taught")
    dimension: Annotated[int, Whole, Ge(2), Le(MAX_LABEL_DIMENSION)] = Field(
        description="number of axes"
    )
    objective: Objective = Field("depth", description="what best moves make least")
    budget: PositiveCount = Field(description="positions expanded before one is left out")
    rounds: Annotated[list[Round], Len(1)] = Field(
        description="families of positions, new ones for each round; student is the player so far"
    )
    algorithm: str = Field(description="networks and discount, a file in rl_zoo3's form")
    updates: Count = Field(description="of each round; 0: the first positions alone are made")
    batch_size: Size = Field(description="positions of an update")
    learning_rate: Annotated[Any, schedule_field(units=("updates", "progress"), unit=None)] = Field(
        description="number or schedule, of each round"
    )
    temperature: PositiveNumber = Field(description="values are divided by it for the choice")
    value_weight: Annotated[float, Number, Ge(0)] = Field(
        description="of the value loss beside the choice; 0 for nodes or leaves"
    )
    augment: bool = Field(True, description="rename the axes of every position at random")
    max_grad_norm: PositiveNumber = Field(description="the gradient is clipped to this norm")
    every: PositiveCount = Field(description="updates between two measurements")
    test: Test = Field(description="starts that the player is measured from")
    seed: Count = Field(description="fixes everything")

    @model_validator(mode="after")
    def _fits(self) -> TeachConfig:
        if self.value_weight and self.objective != "depth":
            raise ValueError(
                f".value_weight: got {self.value_weight}; expected 0, values in {self.objective} "
                "are no numbers of moves"
            )
        for family in (each for families in self.rounds for each in families):
            if STUDENT in family.hosts + family.agents and STUDENT not in getattr(
                family, f"{self.seat}s"
            ):
                raise ValueError(f".rounds: {STUDENT}: got the other seat's; expected {self.seat}s")
        return self
