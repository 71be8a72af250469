"""Learning from the solver: positions labelled with all optimal moves, and what is taught by them.

``python -m sb3_ext.teach --help`` lists the commands.
"""

from sb3_ext.studies.teach.dataset import Dataset, Split, load_dataset
from sb3_ext.studies.teach.reinforcement import MirroredGames, Teacher

__all__ = ["Dataset", "MirroredGames", "Split", "Teacher", "load_dataset"]
