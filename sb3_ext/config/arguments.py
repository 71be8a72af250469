"""Check keyword arguments of configuration files against the function that receives them."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from sb3_ext.config.checks import LARGEST_COUNT, numeric_string_hint, shown
from sb3_ext.config.registry import Registry, unknown_word
from sb3_ext.config.sections import ConfigError, errors_of

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
