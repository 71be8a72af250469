"""`docs/ddqn.md` lists every argument with its default, `docs/metrics.md` every metric."""

import inspect
import re
from pathlib import Path

from stable_baselines3 import DQN

from sb3_ext.ddqn import DDQN
from tests.sb3_ext.callbacks.helpers import keep_logs
from tests.sb3_ext.ddqn.helpers import make_model

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = (DOCS / "ddqn.md").read_text(encoding="utf-8")
METRICS = (DOCS / "metrics.md").read_text(encoding="utf-8").split("\n## ")[1]
OURS = inspect.signature(DDQN).parameters
STOCK = inspect.signature(DQN).parameters


def rows(columns, page=PAGE):
    """Rows of the tables of so many columns: first cell without backticks, to the others."""
    found = {}
    for line in page.splitlines():
        if line.startswith("| `"):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            if len(cells) == columns:
                found[cells[0].strip("`")] = cells[1:]
    return found


def test_every_new_argument_is_listed_with_its_default():
    listed = rows(5)
    assert set(listed) == set(OURS) - set(STOCK)
    for name, cells in listed.items():
        assert cells[1] == f"`{OURS[name].default!r}`", name


def test_every_other_default_of_sb3_is_listed():
    changed = {
        name: [f"`{STOCK[name].default!r}`", f"`{OURS[name].default!r}`"]
        for name in OURS.keys() & STOCK.keys()
        if OURS[name].default != STOCK[name].default
    }
    assert {name: cells[:2] for name, cells in rows(4).items()} == changed


def test_every_metric_is_listed():
    model = make_model(evaluation_rows=2)
    kept = keep_logs(model)
    model.learn(256)
    assert set(rows(3, METRICS)) - {"collector/..."} == set(kept.dumps[-1])
