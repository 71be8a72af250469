"""Networks that know the points of the game."""

from __future__ import annotations
