"""Interchangeable implementations of a step, all equal to the torch reference."""

from resgym.game.episode import Backend
from resgym.kernels.dispatch import BACKENDS, quickest_backend, resolve_backend

__all__ = ["BACKENDS", "Backend", "quickest_backend", "resolve_backend"]
