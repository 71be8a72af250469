"""States as JSON and tensors: how a checkpoint says what is no tensor, and its errors.

A state is nested dictionaries (keys are strings or whole numbers), lists and tuples of tensors,
arrays and numbers of NumPy, None, numbers, booleans and strings. In JSON a list is a list; what
JSON lacks is an object with one key: ``{"dict": [[key, value], ...]}``, ``{"tuple": [...]}``,
``{"tensor": name}`` or ``{"array": name}``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from torch import Tensor

from sb3_ext.config.arguments import REFUSALS
from sb3_ext.config.checks import one_line


class CheckpointError(ValueError):
    """A checkpoint is missing, damaged, or does not fit; one line naming file and field."""


class CheckpointWarning(UserWarning):
    """Something about a checkpoint that did not stop the work."""


@contextmanager
def errors_named(place: str, kind: type[ValueError] = CheckpointError) -> Iterator[None]:
    """Turns whatever malformed data raises into one error that begins with its place."""
    try:
        yield
    except KeyError as error:
        raise kind(f"{place}: {error} is missing") from error
    except (*REFUSALS, OSError, SafetensorError) as error:
        raise kind(f"{place}: {one_line(error)}") from error


def split_state(value: Any, field: str) -> tuple[Any, dict[str, Tensor]]:
    """Data for JSON, and the tensors by the names that it refers to them with.

    Raises:
        TypeError: a value or a key is of another type; names the field.
    """
    tensors: dict[str, Tensor] = {}

    def visit(item: Any, path: str) -> Any:
        # By exact type: a subclass, such as an enum, would come back as another.
        if item is None or type(item) in (bool, float, int, str):
            return item
        if isinstance(item, (Tensor, np.ndarray, np.generic)):
            while path in tensors:  # of {"a/b": ..} and {"a": {"b": ..}}
                path += "'"
            if isinstance(item, Tensor):
                tensors[path] = item
                return {"tensor": path}
            tensors[path] = torch.from_numpy(np.asarray(item))
            return {"array": path}
        if isinstance(item, Mapping):
            if wrong := [key for key in item if type(key) not in (int, str)]:
                raise TypeError(f"{path}: got the key {wrong[0]!r}; expected text or whole numbers")
            return {"dict": [[key, visit(entry, f"{path}/{key}")] for key, entry in item.items()]}
        if type(item) not in (list, tuple):
            raise TypeError(f"{path}: got {type(item).__name__}; expected tensors and plain data")
        entries = [visit(entry, f"{path}/{number}") for number, entry in enumerate(item)]
        return entries if type(item) is list else {"tuple": entries}

    return visit(value, field), tensors


def join_state(plain: Any, tensors: Mapping[str, Tensor]) -> Any:
    """Puts together what `split_state` took apart; malformed data raises what it may."""
    if isinstance(plain, list):
        return [join_state(entry, tensors) for entry in plain]
    if not isinstance(plain, dict):
        return plain
    ((kind, content),) = plain.items()
    if kind == "dict":
        return {key: join_state(entry, tensors) for key, entry in content}
    if kind == "tuple":
        return tuple(join_state(content, tensors))
    if kind not in ("tensor", "array"):
        raise ValueError(f"got {kind!r}; expected dict, tuple, tensor or array")
    tensor = tensors[content]
    return tensor if kind == "tensor" else tensor.numpy()[()]  # what has no axis is a number
