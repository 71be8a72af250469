"""Networks that know the points of the game. Importing this registers their features extractors."""

from __future__ import annotations

from sb3_ext.points.extractors import OrderedPointsExtractor, PointPairsExtractor, PointSetExtractor

__all__ = ["OrderedPointsExtractor", "PointPairsExtractor", "PointSetExtractor"]
