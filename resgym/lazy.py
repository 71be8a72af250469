"""Names that are imported when they are first used: those of packages, and functions of wings."""

from __future__ import annotations

import ast
import functools
import pkgutil
import sys
from collections.abc import Callable
from typing import Any

from resgym.trust import packaged


class Lazy(str):
    """A path ``module:name`` that is a method: it is imported when the method is used.

    So a class of the core has methods that the wings hold.
    """

    def __get__(self, instance: object, owner: type) -> Any:
        return packaged(self).__get__(instance, owner)


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package (PEP 562).

    The package imports its names under ``TYPE_CHECKING`` alone: its source, which is read when the
    first name is asked for, tells from which module each one comes. Modules of the package are
    attributes too. ``dir`` lists the public names only.

    Args:
        package: name of the package.
    """

    @functools.cache
    def homes() -> dict[str, str | None]:
        source = pkgutil.get_data(package, "__init__.py") or b""
        return {
            alias.name: node.module
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }

    def get(name: str) -> Any:
        home, module = homes().get(name), f"{package}.{name}"
        try:
            found = packaged(f"{home}:{name}" if home else module)
        except ModuleNotFoundError as error:
            if error.name != module:  # something that it needs
                raise
            message = f"module {package!r} has no attribute {name!r}"
            # With these, Python adds the closest name.
            raise AttributeError(message, name=name, obj=sys.modules[package]) from None
        setattr(sys.modules[package], name, found)
        return found

    return get, lambda: sorted(sys.modules[package].__all__)
