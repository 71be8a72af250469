"""The one seam to stable-baselines3's off-policy algorithms: loop, collection, log."""
