"""Names for classes and factories, so that configuration files can stay plain data."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from resgym.trust import named_class
from sb3_ext.config.checks import shown

T = TypeVar("T")


def unknown_word(what: str, given: object, choices: Iterable[str]) -> str:
    """Format an error: the unknown word, the nearest known one, and all choices."""
    names = sorted(choices)
    lowered = {name.lower(): name for name in names}
    near = difflib.get_close_matches(str(given).lower(), list(lowered), n=1, cutoff=0.5)
    hint = f" did you mean {lowered[near[0]]!r}?" if near else ""
    return f"unknown {what} {shown(given)};{hint} choices: {', '.join(names) or 'none'}"


class Registry(dict[str, T]):
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
        self.kind, self.base = kind, base

    def register(self, name: str, entry: Any = None) -> Any:
        """Add an entry under a free name; ``@register(name)`` is a decorator."""
        if not isinstance(name, str) or not name:
            raise ValueError(f"a {self.kind} needs a name that is not empty, got {name!r}")
        if entry is None:
            return lambda item: self.register(name, item)
        if self.setdefault(name, entry) is not entry:
            raise ValueError(f"{self.kind} {name!r} is registered already; take another name")
        return entry

    def resolve(self, name: str) -> T:
        """Return the entry of a name, or the class of a path; errors list the choices."""
        if not isinstance(name, str):
            choices = ", ".join(self)
            raise TypeError(f"{self.kind} must be one of the names {choices}, got {shown(name)}")
        if name not in self:
            if self.base is not None and ":" in name:
                return named_class(name, self.base)  # type: ignore[return-value]
            raise ValueError(unknown_word(self.kind, name, self))
        return self[name]

    def name_of(self, entry: T) -> str:
        """Return the first name of an entry."""
        try:
            return next(name for name, item in self.items() if item is entry)
        except StopIteration:
            raise ValueError(f"{entry!r} is not a registered {self.kind}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(super().__iter__()))
