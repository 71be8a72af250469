"""Nested states of tensors and plain data, taken apart for files of the one and of the other kind.

A state is a dictionary with strings as keys. Its values are tensors, None, booleans, integers,
floats, strings, and dictionaries and lists of these; tuples come back as lists. In the plain half
a tensor is replaced by ``{"$tensor": name}`` and a float that JSON lacks by ``{"$float": "inf"}``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from torch import Tensor

__all__ = ["join_state", "split_state"]

_TENSOR, _FLOAT = "$tensor", "$float"
_WHOLE = "tensor"


def split_state(value: Any, field: str) -> tuple[Any, dict[str, Tensor]]:
    """Data for JSON, and the tensors by the names that it refers to them with.

    Args:
        value: the state, see the module.
        field: how errors call it.

    Raises:
        TypeError: a value or a key is of another type; names the field.
        ValueError: a key begins with ``$``.
    """
    tensors: dict[str, Tensor] = {}

    def visit(item: Any, path: tuple[str, ...]) -> Any:
        if isinstance(item, Tensor):
            # As JSON pointers (RFC 6901) escape the separator.
            escaped = [key.replace("~", "~0").replace("/", "~1") for key in path]
            name = "/".join(escaped) or _WHOLE
            tensors[name] = item
            return {_TENSOR: name}
        # By exact type: a subclass, such as NumPy's float64 or an enum, would come back as another.
        if item is None or type(item) in (bool, int, str):
            return item
        if type(item) is float:
            return item if math.isfinite(item) else {_FLOAT: repr(item)}
        where = "/".join((field, *path))
        if isinstance(item, Mapping):
            for key in item:
                if type(key) is not str:
                    raise TypeError(f"{where}: keys must be strings, got {key!r}")
                if key.startswith("$"):
                    raise ValueError(f"{where}: keys must not begin with '$', got {key!r}")
            return {key: visit(entry, (*path, key)) for key, entry in item.items()}
        if isinstance(item, (list, tuple)):
            return [visit(entry, (*path, str(i))) for i, entry in enumerate(item)]
        raise TypeError(
            f"{where}: a state holds tensors, numbers, strings, None, dictionaries and lists, got"
            f" {type(item).__name__}"
        )

    return visit(value, ()), tensors


def join_state(plain: Any, tensors: Mapping[str, Tensor], field: str) -> Any:
    """Puts together what `split_state` took apart.

    Raises:
        ValueError: a reference is malformed or names no tensor, or nothing refers to a tensor.
    """
    used: set[str] = set()

    def visit(item: Any, where: str) -> Any:
        if isinstance(item, list):
            return [visit(entry, f"{where}/{i}") for i, entry in enumerate(item)]
        if not isinstance(item, dict):
            return item
        if _TENSOR in item:
            name = item[_TENSOR]
            if len(item) != 1 or not isinstance(name, str) or name not in tensors:
                raise ValueError(f"{where}: there is no tensor {name!r}")
            used.add(name)
            return tensors[name]
        if _FLOAT in item:
            if item not in ({_FLOAT: "inf"}, {_FLOAT: "-inf"}, {_FLOAT: "nan"}):
                raise ValueError(f"{where}: {item} is no number")
            return float(item[_FLOAT])
        return {key: visit(entry, f"{where}/{key}") for key, entry in item.items()}

    state = visit(plain, field)
    unused = sorted(set(tensors) - used)
    if unused:
        raise ValueError(f"{field}: nothing refers to the tensor {unused[0]!r}")
    return state
