"""Networks and schedules as fields of a configuration, which stays plain data."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from sb3_ext.config.sections import Size, checked
from sb3_ext.networks.mlp import expand_net_arch
from sb3_ext.schedules.schedules import Unit, parse_schedule


def schedule_field(
    highest: float = math.inf,
    units: tuple[Unit, ...] = ("updates", "transitions"),
    unit: Unit | None = "updates",
) -> BeforeValidator:
    """A validator for schedules of `units` in [0, highest]; `unit` where a form says none."""

    def check(value: Any) -> Any:
        schedule = parse_schedule(value, "", unit, highest)
        if schedule.unit not in units:
            why = "" if "progress" in units else ": there is no end that progress could refer to"
            raise ValueError(
                f" must be a schedule of {' or '.join(units)}, got unit {schedule.unit!r}{why}"
            )
        return value  # plain data can be written out as it was read

    return checked(check)


NetArch = Annotated[list[Any], checked(lambda value: expand_net_arch(value, name="") and value)]
"""The ``net_arch`` language."""
Widths = Annotated[
    list[Size], AfterValidator(lambda value: expand_net_arch(value, name="") and value)
]
"""Widths of layers alone, as SB3's own policies have them."""
LearningRate = Annotated[Any, schedule_field()]
ExplorationRate = Annotated[Any, schedule_field(highest=1.0)]
