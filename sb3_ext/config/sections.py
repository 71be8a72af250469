"""Parts that configurations are made of: strict sections, checked numbers, one-line errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from sb3_ext.config.checks import check_count, check_number, numeric_string_hint
from sb3_ext.config.registry import Registry, unknown_word
from sb3_ext.schedules.schedules import Schedule, parse_schedule

__all__ = [
    "ConfigError",
    "Count",
    "ExplorationRate",
    "Fraction",
    "LearningRate",
    "PositiveCount",
    "PositiveNumber",
    "Section",
    "checked",
    "read_section",
    "registered",
]

S = TypeVar("S", bound="Section")


class ConfigError(ValueError):
    """A configuration is not valid; the message is one line that names the field."""


class Section(BaseModel):
    """A part of a configuration: every field must be given, no other, with its exact type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    def to_dict(self) -> dict[str, Any]:
        """Plain data that reads back to an equal section."""
        return self.model_dump()


def checked(check: Callable[[Any], Any]) -> BeforeValidator:
    """A validator from a function that returns the value to keep or raises.

    Args:
        check: its errors continue the name of the field: ``" must be ..."`` or ``": ..."``.
    """

    def run(value: Any) -> Any:
        try:
            return check(value)
        except TypeError as error:  # pydantic lets these pass through
            raise ValueError(str(error)) from None

    return BeforeValidator(run)


def registered(registry: Registry[Any]) -> BeforeValidator:
    """A validator for the names of a registry, also those registered later."""

    def check(value: Any) -> Any:
        registry.resolve(value)
        return value

    return checked(check)


def _schedule(highest: float) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        schedule = parse_schedule(value, "", "updates")
        low, high = schedule.bounds()
        if low < 0 or high > highest:
            raise ValueError(f": {schedule!r} takes {low:g} to {high:g}, not in [0, {highest:g}]")
        if schedule.unit == "progress":
            raise ValueError(
                ": the two-player trainer has no end that progress could refer to; give the "
                "schedule a number of steps and the unit updates or transitions"
            )
        # The configuration stays plain data, so that it can be written out as it was read.
        return value.to_dict() if isinstance(value, Schedule) else value

    return check


Count = Annotated[int, checked(lambda value: check_count("", value, low=0))]
PositiveCount = Annotated[int, checked(lambda value: check_count("", value))]
Fraction = Annotated[float, checked(lambda value: check_number("", value, 0, 1))]
PositiveNumber = Annotated[float, checked(lambda value: check_number("", value, 0, above=True))]
LearningRate = Annotated[Any, checked(_schedule(float("inf")))]
ExplorationRate = Annotated[Any, checked(_schedule(1.0))]


def read_section(model: type[S], data: Any, where: str = "") -> S:
    """A section from plain data, which is not modified.

    Args:
        model: the section's class.
        data: a mapping, or a section that was read already.
        where: dotted name of the section; empty for a whole configuration.

    Raises:
        ConfigError: something is missing, unknown, of another type or out of range.
    """
    if isinstance(data, model):
        return data
    if not isinstance(data, Mapping):
        raise ConfigError(f"{where or 'a configuration'} must be a mapping, got {data!r}")
    try:
        return model.model_validate(dict(data))
    except ValidationError as error:
        raise ConfigError(_one_line(error, model, where)) from None


def _one_line(error: ValidationError, model: type[Section], where: str) -> str:
    # An unknown key explains a missing one, so it is told first.
    found = sorted(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
    first = found[0]
    path = [str(part) for part in first["loc"]]
    dotted = ".".join([where, *path] if where else path)
    kind, given = first["type"], first["input"]
    raised = first.get("ctx", {}).get("error")
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    if isinstance(raised, ConfigError):
        return f"{raised}{more}"
    if kind == "extra_forbidden":
        section = _section_at(model, path[:-1])
        parent = ".".join(([where] if where else []) + path[:-1])
        what = f"key of {parent}" if parent else "key"
        return unknown_word(what, path[-1], section.model_fields) + more
    if kind == "missing":
        return f"{dotted} is missing: {_description(model, path)}{more}"
    if raised is not None:
        text = str(raised)
        return f"{dotted}{text if text[:1] in (' ', ':', '[') else ': ' + text}{more}"
    text = first["msg"].replace("Input should be", "must be")
    return f"{dotted} {text}, got {given!r}{numeric_string_hint(given)}{more}"


def _section_at(model: type[Section], path: list[str]) -> type[Section]:
    for name in path:
        inner = model.model_fields[name].annotation
        if not (isinstance(inner, type) and issubclass(inner, Section)):
            # An optional section: take the section of the union.
            options = getattr(inner, "__args__", ())
            inner = next(o for o in options if isinstance(o, type) and issubclass(o, Section))
        model = inner
    return model


def _description(model: type[Section], path: list[str]) -> str:
    return _section_at(model, path[:-1]).model_fields[path[-1]].description or "no description"
