"""See the package."""

from sb3_ext.train.card import main

__all__ = ["main"]
