"""See the package."""

from sb3_ext.train.loading import load_player

__all__ = ["load_player"]
