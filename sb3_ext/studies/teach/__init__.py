"""Learning from the solver: positions labelled with all optimal moves, and what is taught by them.

``python -m sb3_ext.teach --help`` lists the commands.
"""

from sb3_ext.studies.teach.dataset import Dataset, load_dataset
from sb3_ext.studies.teach.examples import Examples
from sb3_ext.studies.teach.reinforcement import Teacher

__all__ = ["Dataset", "Examples", "Teacher", "load_dataset"]
