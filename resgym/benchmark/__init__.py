"""The benchmark: solved positions, and players measured against proved optimal play.

See docs/scoreboard.md.
"""

from resgym.benchmark.solved import SPLITS, Solved, load
from resgym.benchmark.tasks import TASKS, Result, evaluate, make

__all__ = ["SPLITS", "TASKS", "Result", "Solved", "evaluate", "load", "make"]
