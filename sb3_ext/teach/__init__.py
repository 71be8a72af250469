"""Learning from the solver: positions with their best moves, and what a network learns by them."""

from typing import TYPE_CHECKING

from resgym.lazy import lazy_names

if TYPE_CHECKING:
    from sb3_ext.teach.teacher import Margins, Teacher
else:
    # The players that come with the package need none of them.
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["Margins", "Teacher"]
