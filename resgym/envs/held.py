"""Fields that a compiled step leaves as arrays until somebody looks at them.

Making a tensor of an array costs a fair part of a compiled step of one game, and most fields are
only handed on to the next step. So an owner holds the arrays, and a tensor is made of one when it
is read. Anybody may hold an array of which a tensor was made: it is never written to again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

import torch

from resgym.kernels.step import Fields

__all__ = ["HeldField", "Holder", "as_tensor"]

Value = TypeVar("Value")


def as_tensor(value: Any) -> torch.Tensor:
    """A tensor of an array, which shares its memory; a tensor is returned as it is."""
    return value if isinstance(value, torch.Tensor) else torch.from_numpy(value)


class HeldField(Generic[Value]):
    """An attribute of a `Holder` that is made of its arrays when it is read first.

    Once made, or assigned, it is an attribute like any other.

    Args:
        make: the attribute's value, of the fields that the owner holds.
    """

    def __init__(self, make: Callable[[Fields], Value]) -> None:
        self.make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, owner: None, kind: Any) -> HeldField[Value]: ...
    @overload
    def __get__(self, owner: Holder, kind: Any) -> Value: ...
    def __get__(self, owner: Holder | None, kind: Any = None) -> Any:
        """Only called while the owner has no attribute of this name."""
        if owner is None:
            return self
        assert owner._held is not None
        value = vars(owner)[self.name] = self.make(owner._held)
        return value


class Holder:
    """Base of what has attributes that are `HeldField`."""

    _held: Fields | None = None
    _held_names: tuple[str, ...] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = [name for name, value in vars(cls).items() if isinstance(value, HeldField)]
        cls._held_names = (*cls._held_names, *own)

    def hold(self, fields: Fields) -> None:
        """Takes fields over, arrays or tensors, in the place of all attributes."""
        mine = vars(self)
        for name in self._held_names:
            mine.pop(name, None)
        self._held = fields

    def holds(self, fields: Fields) -> bool:
        """Whether these are the fields taken over last, and no attribute was read or assigned."""
        return self._held is fields and vars(self).keys().isdisjoint(self._held_names)

    def snapshot(self) -> dict[str, Any]:
        """All attributes, for `restore`: values are replaced, never written to."""
        return dict(vars(self))

    def restore(self, kept: dict[str, Any]) -> None:
        """Puts all attributes back, and makes tensors of the fields.

        Somebody may have looked at them meanwhile, so their arrays must not be written to.
        """
        mine = vars(self)
        mine.clear()
        mine.update(kept)
        for name in self._held_names:
            getattr(self, name)
