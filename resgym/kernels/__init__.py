"""Interchangeable implementations of a step, all equal to the torch reference."""

from typing import TYPE_CHECKING

from resgym.lazy import lazy_names

if TYPE_CHECKING:
    from resgym.game.episode import Backend
    from resgym.kernels.dispatch import BACKENDS, resolve_backend
else:
    # The solver's kernels need no torch.
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["BACKENDS", "Backend", "resolve_backend"]
