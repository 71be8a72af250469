"""Interchangeable implementations of the hot operations, all equal to the torch reference."""

from __future__ import annotations

from resgym.kernels.dispatch import BACKENDS, Backend, host_actions, resolve_backend

__all__ = ["BACKENDS", "Backend", "host_actions", "resolve_backend"]
