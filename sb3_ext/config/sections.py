"""Configurations: strict sections, from files, dictionaries and the command line."""

from __future__ import annotations

import argparse
import copy
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeVar

from annotated_types import Ge, Gt, Le
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from resgym.files import read_text
from sb3_ext.config.checks import (
    LARGEST_COUNT,
    ConfigError,
    check_count,
    check_number,
    errors_of,
    numeric_string_hint,
    one_line,
    shown,
    unknown_word,
)
from sb3_ext.config.effects import MAX_BYTES, judge, parse_yaml
from sb3_ext.types import Arguments, Data

T = TypeVar("T")


class Section(BaseModel):
    """A part of a configuration: no unknown field, each with its exact type.

    Validators of fields and sections raise ValueError; the message continues after the name of the
    field or section (``" must be ..."``, ``": ..."``, ``".field must be ..."``). The text below a
    field is its description.
    """

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True
    )

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
                    about = f": {one_line(field.description)}" if field.description else ""
                    raise ValueError(f".{name} is missing{about}")
            return dict(data)
        return data

    def to_dict(self) -> Data:
        """Plain data that reads back to an equal section."""
        return self.model_dump()


class Switches(Section):
    """Switches of PyTorch for a training, see `sb3_ext.runs.command.numerics`."""

    deterministic: bool = False
    """use only operations of PyTorch that repeat bit for bit, and warn where it has none; needed on
    CUDA only (default false)"""
    tf32: bool = False
    """allow TF32 matrix multiplication: faster on recent NVIDIA GPUs, lower precision (default
    false)"""
    detect_anomaly: bool = False
    """check every gradient for NaN and name the operation that made it; makes updates several times
    slower (default false)"""


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
CountOrMinusOne = Annotated[int, Whole, Ge(-1)]
"""A count, or -1 for none or no limit, as rl_zoo3 has it."""
PositiveCount = Annotated[int, Whole, Ge(1)]
Size = Annotated[int, Whole, Ge(1), Le(2**20)]
"""A number of things in memory at once: rows of a batch, games in parallel."""
Threads = Annotated[int, Whole, Ge(-1), Le(1024)]
"""Threads of PyTorch; -1 leaves their number to it."""
Transitions = Annotated[int, Whole, Ge(1), Le(2**36)]
"""Capacity of a replay buffer: more are terabytes, and refused before anything is built."""
Fraction = Annotated[float, Number, Ge(0), Le(1)]
PositiveFraction = Annotated[float, Number, Gt(0), Le(1)]
PositiveNumber = Annotated[float, Number, Gt(0)]
NonNegative = Annotated[float, Number, Ge(0)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
"""A name that is also that of a folder."""

_ALLOWED = {
    "bool_type": "true or false",
    "greater_than": "above {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "below {lt:g}",
    "less_than_equal": "at most {le:.16g}",
    "dict_type": "a mapping",
    "list_type": "a list",
    "tuple_type": "a list",
    "model_type": "a mapping",
    "string_pattern_mismatch": "text of the form {pattern}",
    "string_type": "text",
    "too_short": "at least {min_length} long",
}


def read_as(kind: type[T], data: Any, where: str = "") -> T:
    """Plain data, which is not modified, as a section or as ``list[Version]`` of a dataclass.

    Args:
        kind: the type.
        data: a mapping for a section, or a section that was read already.
        where: dotted name of the section; empty for a whole configuration.

    Raises:
        ConfigError: something is missing, unknown, of another type or out of range.
    """
    try:
        return TypeAdapter(kind).validate_python(data)
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
    if isinstance(raised, ConfigError):  # of a section read on its own, with its count
        return str(raised)
    if raised is not None:
        text = str(raised)
        text = text if text[:1] in (" ", ".", ":", "[") else f": {text}"
    else:
        allowed = first["msg"].replace("Input should be", "must be").replace(" should ", " must ")
        if kind in _ALLOWED:
            allowed = f"must be {_ALLOWED[kind].format(**about)}"
        text = f" {allowed}, got {shown(given)}{numeric_string_hint(given)}"
    return f"{path}{text}".lstrip(" .:") + more


_CONFIGS = (Path(__file__).parents[1] / "configs", Path(__file__).parents[2] / "configs")
"""An installed package has its configurations beside its code, a checkout at the top."""


def shipped_configs(folder: str = "") -> list[str]:
    """Return the names of the shipped files in a folder of ``configs``, sorted."""
    return sorted({path.stem for root in _CONFIGS for path in (root / folder).glob("*.yml")})


def find_config(
    name: str | Path, folder: str = "", field: str = "config", *, shipped: bool = False
) -> Path:
    """Return the file of a path, or of the name of a shipped file.

    Args:
        name: with or without ``.yml`` if it comes with the package.
        folder: where it lies then, below ``configs``.
        field: what the error calls it.
        shipped: only those that come with the package.
    """
    own = [root / folder / f"{name}{end}" for root in _CONFIGS for end in ("", ".yml")]
    if str(name).startswith((".", os.sep)):  # a path, not a name
        own = []
    for path in own if shipped else (Path(name), *own):
        if os.path.isfile(path):
            return path
    if os.path.exists(name):
        raise ConfigError(f"{field}: got {shown(str(name))}; expected a regular file")
    raise ConfigError(
        f"{field}: there is no file {shown(str(name))}, and none of this name among "
        f"{', '.join(shipped_configs(folder))}"
    )


class ConfigFile(Section):
    """A section that is a whole file.

    Attributes:
        folder: where those of the package lie, below ``configs``.
    """

    folder: ClassVar[str] = ""

    @classmethod
    def read(
        cls, source: Self | Mapping[str, Any] | str | Path, settings: Sequence[str] = ()
    ) -> Self:
        """Reads and checks a configuration.

        Args:
            source: the path of a YAML file, the name of one of this package, a dictionary (which
                is not modified) or a configuration.
            settings: changes in the form ``dotted.key=value``, see `apply_settings`.

        Raises:
            ConfigError: one line that names file and field, what was given and what is allowed.
        """
        if isinstance(source, cls):
            return cls.read(source.to_dict(), settings) if settings else source
        if isinstance(source, Mapping):
            left_out = {k: None for k, each in cls.model_fields.items() if each.default is None}
            changed = apply_settings({**left_out, **source}, settings)
            try:
                return read_as(cls, changed)
            except ConfigError as error:
                for name, value in map(split_setting, settings):
                    if isinstance(value, Mapping) and str(error).startswith(name):
                        raise ConfigError(
                            f"{error}; --set {name} replaces all of it, --set {name}.KEY=VALUE one "
                            "key"
                        ) from None
                raise
        path = find_config(str(source), cls.folder)
        data = read_mapping(path)
        try:
            return cls.read(data, settings)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None

    @classmethod
    def saved(cls, data: Data, file: str | Path) -> Self:
        """Return the configuration in a checkpoint, checked as one from a file of this path."""
        with errors_of(str(file)):
            judge(data, file)
            return cls.read(data)

    @classmethod
    def shipped(cls) -> list[str]:
        """Names of the files that come with the package, sorted."""
        return shipped_configs(cls.folder)


def read_mapping(path: Path) -> Data:
    """The mapping that a file holds, judged by its effects; a ConfigError begins with the path."""
    with errors_of(str(path)):
        data = parse_yaml(read_text(path, "file", 4 * MAX_BYTES))
        if not isinstance(data, dict):
            raise ValueError(f"must hold a mapping, got {type(data).__name__}")
        judge(data, path)
    return data


def split_setting(text: str, separator: str = "=", option: str = "--set") -> tuple[str, Any]:
    """The key and the value of an argument ``key=value``, the value in YAML."""
    name, found, value = text.partition(separator)
    if not found or not name:
        raise ConfigError(
            f"{option} must have the form dotted.key{separator}value, got {shown(text)}"
        )
    with errors_of(f"{option} {name}: {shown(value)} is not a YAML value"):
        return name, parse_yaml(value)


def apply_settings(data: Data, settings: Sequence[str]) -> Data:
    """Return a copy of a configuration with changed keys.

    Args:
        data: the configuration as plain data.
        settings: ``dotted.key=value`` each, the value in YAML; all but the last key have to be
            there already, if only as null.

    Raises:
        ConfigError: a setting has another form, or names an unknown section.
    """
    changed = _unshared(data)
    for name, value in map(split_setting, settings):
        *parents, last = name.split(".")
        section = changed
        for depth, key in enumerate(parents):
            if key not in section:
                where = f"key of {'.'.join(parents[:depth])}" if depth else "key"
                raise ConfigError(f"--set: {unknown_word(where, key, map(str, section))}")
            if section[key] is None:
                section[key] = {}
            section = section[key]
            if not isinstance(section, dict):
                raise ConfigError(f"--set {name}: {'.'.join(parents[: depth + 1])} has no keys")
        section[last] = value
    return changed


def _unshared(data: Any) -> Any:
    """A copy without shared parts: what YAML's anchors repeat is set in one place only."""
    if isinstance(data, Mapping):
        return {key: _unshared(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_unshared(value) for value in data]
    return copy.deepcopy(data)


class StoreYaml(argparse.Action):
    """Reads ``key:value`` arguments, each value as YAML; rl_zoo3 evaluates them as Python."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        """Store the pairs as a dict; the last value of a repeated key counts, as in rl_zoo3."""
        stored = {}
        for pair in values:
            key, value = split_setting(pair, ":", str(option_string))
            stored[key] = _number(value, pair.partition(":")[2])
        setattr(namespace, self.dest, stored)


def _number(value: Any, text: str) -> Any:
    """YAML 1.1 takes 1e-3 for text, which is never meant on a command line."""
    return float(text) if value == text and numeric_string_hint(text) else value


def add_fields(
    parser: argparse._ActionsContainer, section: type[Section], short: Mapping[str, str]
) -> None:
    """Adds an option for each field that has a description; one that is not given is left out.

    Args:
        parser: the parser of the command line.
        section: whose fields they are; `fields_of` reads and checks them.
        short: further spellings, by field.
    """
    for name, field in section.model_fields.items():
        kind = str(field.annotation)
        about = field.description
        if about is None:
            continue
        if str(field.default) not in ("None", "False", ""):  # 0 == False, but 0 is shown
            about += f" (default {field.default})"
        more: dict[str, Any] = {}
        if field.annotation is bool:
            more["action"] = "store_true"
        elif "dict" in kind or "list" in kind:
            more |= {"nargs": "+", "action": StoreYaml if "dict" in kind else "store"}
        elif "int" in kind:
            more["type"] = lambda text: _number(parse_yaml(text), text)
        parser.add_argument(
            *short.get(name, "").split(),
            f"--{name.replace('_', '-')}",
            default=argparse.SUPPRESS,
            help=about.replace("%", "%%"),
            **more,
        )


def fields_of(given: argparse.Namespace, section: type[Section]) -> Arguments:
    """Those fields of a section that a command line has."""
    return {name: value for name, value in vars(given).items() if name in section.model_fields}
