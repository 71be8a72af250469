"""A game in the terminal, with hints."""

from __future__ import annotations
