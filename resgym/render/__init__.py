"""Positions and games as text, SVG, arrays and animations."""
