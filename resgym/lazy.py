"""Lazy packages: a name is imported when it is first used."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package (PEP 562).

    Modules of the package are attributes too. ``dir`` lists the public names only.

    Args:
        package: name of the package.
        homes: for each module, the names that it provides, separated by spaces.
    """
    modules = {
        name: f"{package}.{module}" for module, names in homes.items() for name in names.split()
    }

    def get(name: str) -> Any:
        if name in modules:
            found = getattr(importlib.import_module(modules[name]), name)
        elif name.startswith("_") or importlib.util.find_spec(f"{package}.{name}") is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        else:
            found = importlib.import_module(f"{package}.{name}")
        setattr(sys.modules[package], name, found)
        return found

    return get, lambda: sorted(sys.modules[package].__all__)
