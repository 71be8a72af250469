"""Measures, solver and pictures: what one does with games and players."""

from __future__ import annotations
