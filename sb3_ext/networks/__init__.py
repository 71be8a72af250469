"""Networks: the ``net_arch`` language, features extractors, and their names.

``build_mlp`` and ``ACTIVATIONS`` are in ``mlp.py``, ``FlattenExtractor`` and ``EXTRACTORS`` in
``extractors.py``, ``PointSetExtractor`` in ``point_set.py``, ``OrderedPointsExtractor`` in
``ordered_points.py``, ``PointPairsExtractor`` in ``point_pairs.py``, ``OPTIMIZERS`` in
``optimizers.py``.
Importing this module fills the registries.
"""

from __future__ import annotations

from sb3_ext.networks.extractors import EXTRACTORS, FlattenExtractor
from sb3_ext.networks.mlp import ACTIVATIONS, Mlp, ResidualBlock, build_mlp, expand_net_arch
from sb3_ext.networks.optimizers import OPTIMIZERS
from sb3_ext.points.ordered_points import OrderedPointsExtractor
from sb3_ext.points.point_pairs import PointPairsExtractor
from sb3_ext.points.point_set import PointSetExtractor

__all__ = [
    "ACTIVATIONS",
    "EXTRACTORS",
    "OPTIMIZERS",
    "FlattenExtractor",
    "Mlp",
    "OrderedPointsExtractor",
    "PointPairsExtractor",
    "PointSetExtractor",
    "ResidualBlock",
    "build_mlp",
    "expand_net_arch",
]
