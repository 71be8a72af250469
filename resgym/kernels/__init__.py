"""Interchangeable implementations of a step, all equal to the torch reference."""

from __future__ import annotations

from resgym.game.episode import Backend
from resgym.kernels.dispatch import BACKENDS, quickest_backend, resolve_backend

__all__ = ["BACKENDS", "Backend", "quickest_backend", "resolve_backend"]
