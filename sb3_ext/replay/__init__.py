"""Replay buffers whose transitions are tensors."""

from __future__ import annotations
