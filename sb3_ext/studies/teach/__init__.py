"""Learning from the solver: positions labelled with all optimal moves, and what is taught by them.

``python -m sb3_ext.teach --help`` lists the commands.
"""

from typing import TYPE_CHECKING

from resgym.lazy import lazy_names

if TYPE_CHECKING:
    from sb3_ext.studies.teach.dataset import Dataset, load_dataset
    from sb3_ext.studies.teach.examples import Examples
    from sb3_ext.studies.teach.reinforcement import Teacher
else:
    # The players that come with the package need none of them.
    __getattr__, __dir__ = lazy_names(
        __name__,
        {"dataset": "Dataset load_dataset", "examples": "Examples", "reinforcement": "Teacher"},
    )

__all__ = ["Dataset", "Examples", "Teacher", "load_dataset"]
