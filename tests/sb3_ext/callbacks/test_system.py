"""What a long run costs its machine, and the file that shows that it is alive."""

from __future__ import annotations

import json
import os
from datetime import datetime, timezone
from pathlib import Path

import pytest
import torch

from sb3_ext.callbacks import Heartbeat, SystemStatistics
from sb3_ext.callbacks.system import system_statistics
from sb3_ext.checkpoints.format import CheckpointWarning
from sb3_ext.schedules.frequency import Every
from tests.sb3_ext.callbacks.helpers import StepHook, keep_logs
from tests.sb3_ext.ddqn.helpers import make_model


def test_memory_of_this_process() -> None:
    before = system_statistics(torch.device("cpu"))
    kept = torch.ones(2**24)  # 64 MiB
    after = system_statistics(torch.device("cpu"))
    assert 50 < after["memory_mb"] - before["memory_mb"] < 100
    assert after["peak_memory_mb"] > 50
    assert float(kept[-1]) == 1


def test_statistics_are_logged() -> None:
    model = make_model(log_interval_updates=1, learning_starts=0)
    logs = keep_logs(model)
    model.learn(96, SystemStatistics(Every(transitions=40)))
    assert len(logs.values("system/memory_mb")) == 2
    assert all(0 <= busy < 64 for busy in logs.values("system/processors"))


def test_heartbeat(tmp_path: Path) -> None:
    file = tmp_path / "runs" / "heartbeat.json"
    seen = []
    model = make_model(learning_starts=0)
    beat = Heartbeat(file, Every(transitions=40))
    model.learn(96, [beat, StepHook(lambda _: seen.append(json.loads(file.read_text())))])
    assert {each["state"] for each in seen} == {"running"}
    assert [each["transitions"] for each in seen] == sorted(each["transitions"] for each in seen)
    assert len({each["transitions"] for each in seen}) == 3  # at the start, at 40 and at 80
    last = json.loads(file.read_text())
    assert last["state"] == "ended"
    assert last["process"] == os.getpid()
    assert (last["transitions"], last["updates"]) == (model.num_timesteps, model._n_updates)
    age = datetime.now(timezone.utc) - datetime.fromisoformat(last["time"])
    assert 0 <= age.total_seconds() < 600


def test_training_goes_on_without_a_heartbeat(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="path must be a file, got the folder"):
        Heartbeat(tmp_path)
    (tmp_path / "file").write_text("")
    model = make_model(learning_starts=0)
    with pytest.warns(CheckpointWarning, match="no heartbeat was written"):
        model.learn(16, Heartbeat(tmp_path / "file" / "heartbeat.json"))
    assert model.num_timesteps >= 16
