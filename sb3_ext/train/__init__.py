"""Trains any algorithm of SB3 from a file: `python -m sb3_ext.train`."""

import sb3_ext.minimax  # noqa: F401  # so that `--algo minimax` is known
