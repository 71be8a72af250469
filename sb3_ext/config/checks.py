"""Checks of numbers, names and arguments from configuration files, with one-line errors.

Registries give classes and factories names, so that configuration files can stay plain data. This
module imports nothing that takes long.
"""

from __future__ import annotations

import difflib
import inspect
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from numbers import Real
from typing import Any, Generic, TypeVar

from safetensors import SafetensorError

from resgym.lazy import Lazy
from resgym.texts import one_line as one_line
from resgym.texts import short
from resgym.texts import shown as shown
from resgym.trust import named_class, packaged
from sb3_ext.types import Arguments, Data

T = TypeVar("T")

REFUSALS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""Errors by which constructors of torch and stable-baselines3 refuse arguments."""

LARGEST_COUNT = 2**62
"""Larger whole numbers do not fit into tensors."""


class ConfigError(ValueError):
    """A configuration is invalid; the message is one short line that names the field."""

    def __init__(self, message: str) -> None:
        super().__init__(short(message))


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
        raise kind(short(f"{field}: {error}")) from error


@contextmanager
def errors_named(place: str, kind: type[ValueError] = ConfigError) -> Iterator[None]:
    """Turns whatever malformed data raises into one error that begins with its place."""
    try:
        yield
    except KeyError as error:
        raise kind(f"{place}: {error} is missing") from error
    except (*REFUSALS, OSError, SafetensorError) as error:
        raise kind(short(f"{place}: {one_line(error)}")) from error


def numeric_string_hint(value: Any) -> str:
    """Explain why a number may have arrived as a string; empty for other values."""
    with suppress(ValueError):
        if isinstance(value, str) and len(value) <= 40 and math.isfinite(float(value)):
            return " (a string in YAML: leave out the quotes, and write 1.0e-4 for 1e-4)"
    return ""


def check_number(
    name: str, value: Any, low: float = -math.inf, high: float = math.inf, *, above: bool = False
) -> float:
    """A finite number from ``low`` (excluded if ``above``) to ``high``; no boolean, no string.

    Raises:
        TypeError: the value is not a number.
        ValueError: the value is a number written as a string, not finite, or out of bounds.
    """
    hint = numeric_string_hint(value)
    if hint:
        raise ValueError(f"{name} must be a number, got the string {shown(value)}{hint}")
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {shown(value)}")
    try:
        number = float(value)
    except OverflowError:  # a whole number of more than 308 digits, too long to be shown
        raise ValueError(f"{name} must be a number below 1e308, got a greater one") from None
    below = number <= low if above else number < low
    if not math.isfinite(number) or below or number > high:
        opening = "(" if above or low == -math.inf else "["
        closing = ")" if high == math.inf else "]"
        raise ValueError(
            f"{name} must lie in {opening}{low:g}, {high:g}{closing}, got {shown(value)}"
        )
    return number


def check_count(name: str, value: Any, low: int = 1) -> int:
    """A whole number from ``low`` to `LARGEST_COUNT`; 1.0e5, as YAML gives it, is one.

    Raises:
        TypeError: the value is not a number.
        ValueError: the value is a string, not whole, too small or too large.
    """
    number = check_number(name, value)
    if number != int(number) or number < low:
        least = f" of at least {low}" if low > -LARGEST_COUNT else ""
        raise ValueError(f"{name} must be a whole number{least}, got {shown(value)}")
    if number > LARGEST_COUNT:
        raise ValueError(f"{name} must be at most {LARGEST_COUNT}, got {shown(value)}")
    return int(number)


def check_flag(name: str, value: Any) -> bool:
    """True or False; a `TypeError` for all else, such as the text "no", which counts as true."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be true or false, got {shown(value)}")
    return value


def unknown_word(what: str, given: object, choices: Iterable[str]) -> str:
    """Format an error: the unknown word, the nearest known one, and all choices."""
    names = sorted(choices)
    lowered = {name.lower(): name for name in names}
    near = difflib.get_close_matches(str(given).lower(), list(lowered), n=1, cutoff=0.5)
    hint = f" did you mean {lowered[near[0]]!r}?" if near else ""
    return f"unknown {what} {shown(given)};{hint} choices: {', '.join(names) or 'none'}"


class Registry(dict[str, Any], Generic[T]):
    """A table of names, filled by a decorator and read with helpful errors.

    >>> shapes = Registry("shape")
    >>> @shapes.register("square")
    ... def make_square(): ...
    >>> shapes.resolve("squere")
    Traceback (most recent call last):
    ValueError: unknown shape 'squere'; did you mean 'square'? choices: square
    """

    def __init__(self, kind: str, base: type | None = None) -> None:
        """An empty table.

        Args:
            kind: what the entries are, in the singular; it appears in every error.
            base: what classes must derive from that are given as ``module:Class`` instead of a name
                (see `resgym.trust`); None: there are names only.
        """
        super().__init__()
        self.kind = kind
        self.base = base

    def register(self, name: str, entry: Any = None) -> Any:
        """Add an entry under a free name; ``@register(name)`` is a decorator."""
        if not isinstance(name, str) or not name:
            raise ValueError(f"a {self.kind} needs a name that is not empty, got {shown(name)}")
        if entry is None:
            return lambda item: self.register(name, item)
        if self.setdefault(name, entry) is not entry:
            raise ValueError(f"{self.kind} {name!r} is registered already; take another name")
        return entry

    def later(self, **paths: str) -> None:
        """Add what texts ``module:name`` of this project name; it is imported when it is read."""
        self.update({name: Lazy(path) for name, path in paths.items()})

    def resolve(self, name: str | T) -> T:
        """Return the entry of a name, the class of a path, or a class itself; errors list names."""
        if isinstance(name, type):
            return name  # type: ignore[return-value]
        if not isinstance(name, str):
            raise TypeError(
                f"{self.kind} must be one of the names {', '.join(self)}, got {shown(name)}"
            )
        if name not in self:
            if self.base is not None and ":" in name:
                return named_class(name, self.base)  # type: ignore[return-value]
            hint = "" if self.base is None else "; for one of your own add --import MODULE"
            raise ValueError(unknown_word(self.kind, name, self) + hint)
        return self[name]

    def name_of(self, entry: T) -> str:
        """Return the first name of an entry."""
        for name in dict.__iter__(self):
            if self[name] is entry:
                return name
        raise ValueError(f"{entry!r} is not a registered {self.kind}")

    def __getitem__(self, name: str) -> T:
        entry = super().__getitem__(name)
        return packaged(entry) if isinstance(entry, Lazy) else entry  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(super().__iter__()))


_WORDS = {
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number up to 2^62",
    "str": "text",
}


def check_arguments(
    function: Callable[..., Any], values: Arguments, besides: Collection[str] = ()
) -> None:
    """Check the names of arguments, and the values that are plain numbers, words or flags.

    Args:
        function: a function, or a class for its constructor.
        values: from a configuration.
        besides: further allowed keys.

    Raises:
        ConfigError: an unknown key, or a value of another type than its annotation says.
    """
    if not isinstance(values, Mapping):
        raise ConfigError(f"must be a mapping, got {shown(values)}")
    parameters = inspect.signature(function).parameters
    open_ended = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    names = {name for name in parameters if name != "env" and not name.startswith("_")}
    for key, value in values.items():
        if key not in names | set(besides) and not open_ended:
            raise ConfigError(unknown_word("key", key, names | set(besides)))
        if key in names:
            _check(key, value, parameters[key])


def from_data(registry: Registry[type[T]], word: str, data: Data) -> T:
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


def check_policy(algorithm: Any, policy: str, values: Arguments) -> None:
    """Check the name of an algorithm's policy, and the names of the policy's arguments.

    Arguments of all base classes are allowed. A name with a dot is a class that is not imported
    yet, so nothing is checked.
    """
    known = algorithm.policy_aliases
    if policy not in known:
        if "." not in policy:
            raise ConfigError(unknown_word("policy", policy, known))
        return
    bases = known[policy].__mro__
    names = {name for base in bases for name in inspect.signature(base.__init__).parameters}
    names -= {"args", "arguments", "kwargs", "self"}
    names -= {"observation_space", "action_space", "lr_schedule"}
    for key in values:
        if key not in names | {"extractor"}:
            raise ConfigError(unknown_word("key of the policy's arguments", key, names))


def _check(key: str, value: Any, parameter: inspect.Parameter) -> None:
    """Raise ConfigError for a plain value that the annotation of its parameter excludes."""
    types = _type_names(parameter.annotation)
    kind = type(value).__name__
    takes_more = not types <= {*_WORDS, "None"}  # a list, a class: their owner checks the value
    if value is None:
        fits = "None" in types or parameter.default is None
    elif kind == "str":
        fits = "str" in types or (takes_more and not numeric_string_hint(value))
    elif takes_more:
        fits = True
    elif kind == "bool":
        fits = "bool" in types
    else:
        number = value if isinstance(value, (float, int)) else math.nan
        is_whole = abs(number) <= LARGEST_COUNT and number == int(number)
        is_number = number == number  # not NaN; `math.isnan` takes no integer above 1e308
        fits = ("int" in types and is_whole) or ("float" in types and is_number)
    if not fits:
        wanted = " or ".join(_WORDS[name] for name in sorted(types & _WORDS.keys()))
        raise ConfigError(
            f"{key} must be {wanted or 'a number'}, got {shown(value)}{numeric_string_hint(value)}"
        )


def _type_names(annotation: Any) -> set[str]:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return set(re.findall(r"[\w.]+", text.replace("Optional", "None"))) - {"Union"}
