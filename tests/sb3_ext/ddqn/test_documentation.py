"""The docstring of DDQN has every argument, `docs/metrics.md` every metric."""

import inspect
import re
from pathlib import Path

from stable_baselines3 import DQN

from sb3_ext.ddqn import DDQN

DOCS = Path(__file__).resolve().parents[3] / "docs"
OURS = inspect.signature(DDQN).parameters
STOCK = inspect.signature(DQN).parameters


def test_every_new_argument_is_described():
    described = re.findall(r"^ {4}(\w+): ", inspect.getdoc(DDQN), flags=re.MULTILINE)
    assert set(OURS) - set(STOCK) - {"sb3"} <= set(described)
