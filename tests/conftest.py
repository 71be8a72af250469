"""What every test shares: one thread of arithmetic, and property tests that repeat themselves."""

from __future__ import annotations

import torch
from hypothesis import settings

# Each worker has a core of its own; more threads would only wait for each other.
torch.set_num_threads(1)

# No deadline: the time of an example depends on what else the machine does.
settings.register_profile("resgym", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("resgym")
