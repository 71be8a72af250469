"""Networks that know the points of the game. Importing this registers their features extractors."""

from __future__ import annotations

from sb3_ext.points.ordered_points import OrderedPointsExtractor
from sb3_ext.points.point_pairs import PointPairsExtractor
from sb3_ext.points.point_set import PointSetExtractor

__all__ = ["OrderedPointsExtractor", "PointPairsExtractor", "PointSetExtractor"]
