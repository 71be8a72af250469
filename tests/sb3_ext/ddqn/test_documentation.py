"""The docstring of DDQN has every argument, `docs/metrics.md` every metric."""

import inspect
import re
from pathlib import Path

from stable_baselines3 import DQN

from sb3_ext.ddqn import DDQN
from tests.sb3_ext.callbacks.helpers import keep_logs
from tests.sb3_ext.ddqn.helpers import make_model

DOCS = Path(__file__).resolve().parents[3] / "docs"
METRICS = (DOCS / "metrics.md").read_text(encoding="utf-8").split("\n## ")[1]
OURS = inspect.signature(DDQN).parameters
STOCK = inspect.signature(DQN).parameters


def test_every_new_argument_is_described():
    described = re.findall(r"^ {4}(\w+): ", inspect.getdoc(DDQN), flags=re.MULTILINE)
    assert set(OURS) - set(STOCK) - {"sb3"} <= set(described)


def test_every_other_default_of_sb3_is_listed():
    text = " ".join(inspect.getdoc(DDQN).split())
    for name in OURS.keys() & STOCK.keys() - {"learning_rate"}:
        ours = OURS[name].default
        shown = f"`{name}` {ours:,}" if isinstance(ours, int) else f"`{name}` {ours}"
        assert (shown in text) == (ours != STOCK[name].default), name


def test_every_metric_is_listed():
    model = make_model(evaluation_rows=2)
    kept = keep_logs(model)
    model.learn(256)
    listed = set(re.findall(r"^\| `(.+?)` \|", METRICS, flags=re.MULTILINE))
    assert listed - {"collector/..."} == set(kept.dumps[-1])
