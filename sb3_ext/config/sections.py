"""Parts of configurations: strict sections, checked numbers, one-line errors."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, TypeVar

from annotated_types import Ge, Gt, Le
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from sb3_ext.config.checks import (
    LARGEST_COUNT,
    Registry,
    check_count,
    check_number,
    numeric_string_hint,
    shown,
    unknown_word,
)

S = TypeVar("S", bound="Section")


class ConfigError(ValueError):
    """A configuration is invalid; the message is one line that names the field."""


@contextmanager
def errors_of(field: str, kind: type[ValueError] = ConfigError) -> Iterator[None]:
    """Puts a field's name before a ValueError or TypeError, which becomes one of the given kind.

    A `ConfigError` that stays one has its field's name already.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        if kind is ConfigError and isinstance(error, ConfigError):
            raise
        raise kind(f"{field}: {error}") from error


class Section(BaseModel):
    """A part of a configuration: no unknown field, each with its exact type.

    Validators of fields and sections raise ValueError; the message continues after the name of the
    field or section (``" must be ..."``, ``": ..."``, ``".field must be ..."``). The text below a
    field is its description.
    """

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True
    )

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        for field in cls.model_fields.values():
            if field.description:
                field.description = " ".join(field.description.split())

    @model_validator(mode="before")
    @classmethod
    def _has_its_keys(cls, data: Any) -> Any:
        """An unknown key explains a missing one, so it is reported first."""
        if isinstance(data, Mapping):
            for key in data:
                if key not in cls.model_fields:
                    words = {"key": key, "known": list(cls.model_fields)}
                    raise PydanticCustomError("unknown", "unknown key", words)
            for name, field in cls.model_fields.items():
                if field.is_required() and name not in data:
                    about = f": {field.description}" if field.description else ""
                    raise ValueError(f".{name} is missing{about}")
        return data

    def to_dict(self) -> dict[str, Any]:
        """Plain data that reads back to an equal section."""
        return self.model_dump()


def checked(check: Callable[[Any], Any]) -> BeforeValidator:
    """A validator from a function that returns the value to keep, or raises as `Section` says."""

    def run(value: Any) -> Any:
        try:
            return check(value)
        except TypeError as error:  # pydantic lets these pass through
            raise ValueError(str(error)) from None

    return BeforeValidator(run)


def accepted_by(resolve: Callable[[Any], object]) -> BeforeValidator:
    """A validator for what a function takes without an error, such as `Registry.resolve`."""

    def check(value: Any) -> Any:
        with errors_of("", ValueError):  # a ConfigError would count as one with its field's name
            resolve(value)
        return value

    return checked(check)


Whole = checked(lambda value: check_count("", value, low=-LARGEST_COUNT))
"""Whole numbers also as YAML gives 1.0e5."""
Number = checked(lambda value: check_number("", value))

Count = Annotated[int, Whole, Ge(0)]
PositiveCount = Annotated[int, Whole, Ge(1)]
Size = Annotated[int, Whole, Ge(1), Le(2**20)]
"""Of what is held in memory at once: rows of a batch, games in parallel."""
Transitions = Annotated[int, Whole, Ge(1), Le(2**36)]
"""Of a replay buffer: more than this are terabytes, and refused before anything is built."""
Fraction = Annotated[float, Number, Ge(0), Le(1)]
PositiveFraction = Annotated[float, Number, Gt(0), Le(1)]
PositiveNumber = Annotated[float, Number, Gt(0)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
"""Of what has a folder of its own."""

_ALLOWED = {
    "bool_type": "true or false",
    "greater_than": "above {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "below {lt:g}",
    "less_than_equal": "at most {le:.16g}",
    "dict_type": "a mapping",
    "list_type": "a list",
    "model_type": "a mapping",
    "string_pattern_mismatch": "text of the form {pattern}",
    "string_type": "text",
    "too_short": "at least {min_length} long",
}


def read_section(model: type[S], data: Any, where: str = "") -> S:
    """A section from plain data, which is not modified.

    Args:
        model: the section's class.
        data: a mapping, or a section that was read already.
        where: dotted name of the section; empty for a whole configuration.

    Raises:
        ConfigError: something is missing, unknown, of another type or out of range.
    """
    if not isinstance(data, (model, Mapping)):
        raise ConfigError(f"{where or 'a configuration'} must be a mapping, got {shown(data)}")
    try:
        return model.model_validate(data if isinstance(data, model) else dict(data))
    except ValidationError as error:
        raise ConfigError(_one_line(error, where)) from None


def _one_line(error: ValidationError, where: str) -> str:
    found = error.errors()
    first, more = found[0], f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    kind, given, about = first["type"], first["input"], first.get("ctx", {})
    names = [f"[{name}]" if isinstance(name, int) else f".{name}" for name in first["loc"]]
    path, raised = "".join([where, *names]).lstrip("."), about.get("error")
    if kind == "unknown":
        what = f"key of {path}" if path else "key"
        return unknown_word(what, about["key"], about["known"]) + more
    if isinstance(raised, ConfigError):  # of a section that was read on its own
        return f"{raised}{more}"
    if raised is not None:
        text = str(raised)
        text = text if text[:1] in (" ", ".", ":", "[") else f": {text}"
    else:
        allowed = first["msg"].replace("Input should be", "must be").replace(" should ", " must ")
        if kind in _ALLOWED:
            allowed = f"must be {_ALLOWED[kind].format(**about)}"
        text = f" {allowed}, got {shown(given)}{numeric_string_hint(given)}"
    return f"{path}{text}".lstrip(" .:") + more


T = TypeVar("T")

REFUSALS = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError),
    *(RuntimeError, TypeError, ValueError),
)
"""Errors by which constructors of torch and stable-baselines3 refuse arguments."""

_WORDS = {
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number up to 2^62",
    "str": "text",
}


def check_arguments(
    function: Callable[..., Any], values: Mapping[str, Any], besides: Collection[str] = ()
) -> None:
    """Check the names of arguments, and the values that are plain numbers, words or flags.

    Args:
        function: a function, or a class for its constructor.
        values: from a configuration.
        besides: further allowed keys.

    Raises:
        ConfigError: an unknown key, or a value of another type than its annotation says.
    """
    parameters = inspect.signature(function).parameters
    open_ended = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    names = {name for name in parameters if name != "env" and not name.startswith("_")}
    for key, value in values.items():
        if key not in names | set(besides) and not open_ended:
            raise ConfigError(unknown_word("key", key, names | set(besides)))
        if key in names:
            _check(key, value, parameters[key])


def from_data(registry: Registry[type[T]], word: str, data: Mapping[str, Any]) -> T:
    """Build an object from the name of its class (key ``word``) and its arguments.

    Raises:
        TypeError, ValueError: no such name, an unknown or missing key, or a wrong value.
    """
    if not isinstance(data, Mapping) or word not in data:
        raise ValueError(
            f"must be a mapping with the key {word} ({', '.join(registry)}), got {shown(data)}"
        )
    kind = registry.resolve(data[word])
    arguments = {key: value for key, value in data.items() if key != word}
    check_arguments(kind, arguments)
    with errors_of(data[word], ValueError):
        inspect.signature(kind).bind(**arguments)
    return kind(**arguments)


def check_policy(algorithm: Any, policy: str, values: Mapping[str, Any]) -> None:
    """Check the name of an algorithm's policy, and its argument names in all base classes.

    A name with a dot is a class, which is left to who imports it.
    """
    known = algorithm.policy_aliases
    if "." not in policy and policy not in known:
        raise ConfigError(unknown_word("policy", policy, known))
    bases = known[policy].__mro__ if policy in known else ()
    names = {name for base in bases for name in inspect.signature(base.__init__).parameters}
    names -= {"args", "arguments", "kwargs", "self"}
    names -= {"observation_space", "action_space", "lr_schedule"}
    for key in values if names else ():
        if key not in names | {"extractor"}:
            raise ConfigError(unknown_word("key of the policy's arguments", key, names))


def _check(key: str, value: Any, parameter: inspect.Parameter) -> None:
    types, kind = _type_names(parameter.annotation), type(value).__name__
    own = not types <= {*_WORDS, "None"}  # something of its own, which may have more forms
    if value is None:
        fits = "None" in types or parameter.default is None
    elif kind == "str":
        fits = "str" in types or (own and not numeric_string_hint(value))
    elif own or kind == "bool":
        fits = own or "bool" in types
    else:
        number = value if isinstance(value, (float, int)) else math.nan
        whole = abs(number) <= LARGEST_COUNT and number == int(number)
        fits = whole if types <= {"int", "None"} else "float" in types and number == number
    if not fits:
        wanted = " or ".join(_WORDS[name] for name in sorted(types & _WORDS.keys()))
        raise ConfigError(
            f"{key} must be {wanted or 'a number'}, got {shown(value)}{numeric_string_hint(value)}"
        )


def _type_names(annotation: Any) -> set[str]:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return set(re.findall(r"[\w.]+", text.replace("Optional", "None"))) - {"Union"}
