"""The programs in docs/checkpoints.md run and do what the text says."""

import re
from pathlib import Path

import gymnasium

import resgym
from sb3_ext.checkpoints.resume import save_run
from tests.sb3_ext.checkpoints.helpers import equal
from tests.sb3_ext.ddqn.helpers import make_model, weights
from tests.sb3_ext.train.helpers import make_model as make_player

DOCUMENT = Path(__file__).parents[3] / "docs" / "checkpoints.md"


def programs():
    text = DOCUMENT.read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


def test_writing_and_resuming(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for total in (240, 480):
        names = {"make_model": make_model, "total": total}
        exec(programs()[0], names)
        assert names["model"].num_timesteps == total
    whole = make_model()
    whole.learn(480)
    assert equal(weights(names["model"]), weights(whole))


def test_opponents(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for seat in ("host", "agent"):
        save_run(make_player(seat), Path("runs") / seat)
    sizes = {"dimension": 3, "max_num_points": 5, "max_value": 6}
    program = programs()[1].replace("num_envs=64", f"num_envs=4, **{sizes}")
    program = program.replace('"choose_first")', f'"choose_first", games=20, **{sizes})')
    names = {"gymnasium": gymnasium, "resgym": resgym}
    exec(program, names)
    names["env"].reset(seed=0)
    assert len(programs()) == 2
