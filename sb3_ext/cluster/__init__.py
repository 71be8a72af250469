"""From one machine to many: actors in other processes that collect, one learner; on Ray."""

from sb3_ext.cluster.collector import RayCollector

__all__ = ["RayCollector"]
