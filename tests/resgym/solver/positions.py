"""Positions as the arrays that labels are asked for."""

from __future__ import annotations

import numpy as np


def batch(positions, rows):
    """Positions int64 [N, P, D] in descending order, absent rows -1, and their sizes int64 [N]."""
    dimension = len(positions[0][0])
    points = np.full((len(positions), rows, dimension), -1)
    for row, position in zip(points, positions, strict=True):
        row[: len(position)] = sorted(position, reverse=True)
    return points, np.array([len(position) for position in positions])
