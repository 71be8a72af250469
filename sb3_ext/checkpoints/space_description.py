"""Observation and action spaces as plain data, and back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

__all__ = ["build_space", "describe_space"]

_DTYPE = re.compile(r"u?int(8|16|32|64)|float(16|32|64)")


def describe_space(space: spaces.Space[Any]) -> dict[str, Any]:
    """A space as numbers, strings, lists and dictionaries.

    Args:
        space: a Box, Discrete, MultiBinary, MultiDiscrete, or a Dict of these.

    Raises:
        ValueError: a space of another kind.
    """
    if isinstance(space, spaces.Box):
        return {
            "type": "Box",
            "low": _bound(space.low),
            "high": _bound(space.high),
            "shape": list(space.shape),
            "dtype": str(space.dtype),
        }
    if isinstance(space, spaces.Discrete):
        return {"type": "Discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, spaces.MultiBinary):
        return {"type": "MultiBinary", "shape": list(space.shape)}
    if isinstance(space, spaces.MultiDiscrete):
        return {"type": "MultiDiscrete", "nvec": space.nvec.tolist(), "dtype": str(space.dtype)}
    if isinstance(space, spaces.Dict):
        entries = {str(key): describe_space(entry) for key, entry in space.spaces.items()}
        return {"type": "Dict", "spaces": entries}
    raise ValueError(
        f"space: {type(space).__name__} cannot be described; Box, Discrete, MultiBinary,"
        " MultiDiscrete and Dict can"
    )


def _bound(values: np.ndarray) -> Any:
    """One number where all are the same, else a nested list."""
    first = values.flat[0].item() if values.size else 0.0
    return first if bool((values == first).all()) else values.tolist()


def build_space(description: Mapping[str, Any]) -> spaces.Space[Any]:
    """The space that `describe_space` described.

    Raises:
        ValueError: the description is malformed.
    """
    try:
        kind = description["type"]
        if kind == "Box":
            low, high = (np.array(description[key]) for key in ("low", "high"))
            dtype, shape = _dtype(description["dtype"]), tuple(description["shape"])
            return spaces.Box(
                np.broadcast_to(low.astype(dtype), shape),
                np.broadcast_to(high.astype(dtype), shape),
                dtype=dtype.type,
            )
        if kind == "Discrete":
            return spaces.Discrete(description["n"], start=description["start"])
        if kind == "MultiBinary":
            shape = description["shape"]
            return spaces.MultiBinary(shape[0] if len(shape) == 1 else shape)
        if kind == "MultiDiscrete":
            dtype = _dtype(description["dtype"])
            return spaces.MultiDiscrete(description["nvec"], dtype=dtype.type)
        if kind == "Dict":
            return spaces.Dict({k: build_space(v) for k, v in description["spaces"].items()})
    except (AssertionError, AttributeError, IndexError, KeyError, TypeError) as error:
        raise ValueError(f"space: {description!r} is malformed ({error!r})") from error
    raise ValueError(f"space: unknown type {kind!r}")


def _dtype(name: Any) -> np.dtype[Any]:
    if not isinstance(name, str) or not _DTYPE.fullmatch(name):
        raise ValueError(f"space: unknown dtype {name!r}")
    return np.dtype(name)
