"""The benchmark: solved positions, and players measured against proved optimal play.

See docs/scoreboard.md.
"""

from typing import TYPE_CHECKING

from resgym.lazy import lazy_names

if TYPE_CHECKING:
    from resgym.benchmark.solved import SPLITS, Solved, load
    from resgym.benchmark.tasks import TASKS, Result, evaluate, make
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["SPLITS", "TASKS", "Result", "Solved", "evaluate", "load", "make"]
