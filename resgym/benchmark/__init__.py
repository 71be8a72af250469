"""The benchmark: positions with the costs of all moves, as the solver proves them."""

from typing import TYPE_CHECKING

from resgym.lazy import lazy_names

if TYPE_CHECKING:
    from resgym.benchmark.data import load
    from resgym.benchmark.solved import SPLITS, Solved
else:
    __getattr__, __dir__ = lazy_names(__name__, {"data": "load", "solved": "SPLITS Solved"})

__all__ = ["SPLITS", "Solved", "load"]
