"""Actors in other processes or machines that collect for one learner, on Ray."""

from sb3_ext.cluster.collector import RayCollector

__all__ = ["RayCollector"]
