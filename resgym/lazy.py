"""Packages that open at once: what they gather is imported when it is first asked for."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package (PEP 562).

    Its modules are found as its attributes too, whether they have been imported or not; ``dir``
    lists the public names alone.

    Args:
        package: its name.
        homes: by a module in it, the names that come from there, between blanks.
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
