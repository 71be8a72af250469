"""Positions and games as text, SVG, arrays and animations."""

from __future__ import annotations
