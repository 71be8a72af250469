"""Names for classes and factories, so that configuration files can stay plain data."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar, overload

__all__ = ["Registry", "unknown_word"]

T = TypeVar("T")


def unknown_word(what: str, given: object, choices: Iterable[str]) -> str:
    """One line that says which word was not understood, and which ones would have been.

    Args:
        what: what the word names, such as ``"schedule"`` or ``"configuration key"``.
        given: the word that was given.
        choices: the words that are allowed.

    Returns:
        The message, with the nearest allowed word in front where one is near.
    """
    names = sorted(choices)
    lowered = {name.lower(): name for name in names}
    near = difflib.get_close_matches(str(given).lower(), list(lowered), n=1, cutoff=0.5)
    hint = f" did you mean {lowered[near[0]]!r}?" if near else ""
    return f"unknown {what} {given!r};{hint} choices: {', '.join(names) or 'none'}"


class Registry(Generic[T]):
    """A table of names, filled by a decorator and read with helpful errors.

    Args:
        kind: what the entries are, in the singular; it appears in every error.

    Example:
        >>> shapes = Registry("shape")
        >>> @shapes.register("square")
        ... def make_square(): ...
        >>> shapes.resolve("squere")
        Traceback (most recent call last):
        ValueError: unknown shape 'squere'; did you mean 'square'? choices: square
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, T] = {}

    @overload
    def register(self, name: str) -> Callable[[T], T]: ...
    @overload
    def register(self, name: str, entry: T) -> T: ...

    def register(self, name: str, entry: T | None = None) -> T | Callable[[T], T]:
        """Adds an entry, as ``register(name, entry)`` or as a decorator ``@register(name)``.

        Args:
            name: the entry's name, not empty and not taken.
            entry: the class or factory. Left out, a decorator is returned.

        Returns:
            The entry unchanged, or the decorator.

        Raises:
            TypeError: the name is no string.
            ValueError: the name is empty or belongs to something else already.
        """
        if not isinstance(name, str):
            raise TypeError(f"a {self.kind} is registered under a string, got {name!r}")
        if not name:
            raise ValueError(f"a {self.kind} needs a name that is not empty")

        def add(item: T) -> T:
            if name in self._entries and self._entries[name] is not item:
                raise ValueError(f"{self.kind} {name!r} is registered already; take another name")
            self._entries[name] = item
            return item

        return add if entry is None else add(entry)

    def resolve(self, name: str) -> T:
        """The entry of a name.

        Raises:
            TypeError: the name is no string.
            ValueError: there is no such name; the message lists the choices and the nearest one.
        """
        if not isinstance(name, str):
            raise TypeError(
                f"{self.kind} must be one of the names {', '.join(self.names())}, got {name!r}"
            )
        if name not in self._entries:
            raise ValueError(unknown_word(self.kind, name, self._entries))
        return self._entries[name]

    def name_of(self, entry: T) -> str:
        """The first name that an entry was registered under.

        Raises:
            ValueError: the entry is not registered.
        """
        for name, item in self._entries.items():
            if item is entry:
                return name
        raise ValueError(f"{entry!r} is not a registered {self.kind}")

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"Registry({self.kind!r}: {', '.join(self.names())})"
