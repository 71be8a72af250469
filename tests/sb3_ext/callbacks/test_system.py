"""What a long run costs its machine."""

from __future__ import annotations

import torch

from sb3_ext.callbacks import SystemStatistics
from sb3_ext.callbacks.system import system_statistics
from sb3_ext.schedules.frequency import Every
from tests.sb3_ext.callbacks.helpers import keep_logs
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
