"""A league whose members are trained by other processes, which are killed."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from sb3_ext.two_player.league import main
from tests.sb3_ext.cluster.processes import MARK, marked, marked_cluster, wait_until
from tests.sb3_ext.runs.killed import contents
from tests.sb3_ext.two_player.helpers import league_data

pytest.importorskip("ray", reason="needs the extra: pip install 'resgym[cluster]'")
pytestmark = pytest.mark.long


def kill(times: int) -> None:
    """Kills processes that train, at random moments."""
    draw = random.Random(1)
    while times:
        assert wait_until(lambda: bool(marked(os.environ[MARK], b"ray::do_piece")))
        time.sleep(draw.uniform(0.0, 0.3))
        for number in marked(os.environ[MARK], b"ray::do_piece")[:1]:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
                times -= 1


def test_processes_and_their_deaths_change_nothing(tmp_path: Path) -> None:
    """Three members take turns on two processors."""
    file, whole, out = tmp_path / "tiny.yml", tmp_path / "whole", tmp_path / "out"
    file.write_text(yaml.safe_dump(league_data("members=3")))
    given = ["--config", str(file), "--no-progress", "--out"]
    assert main([*given, str(whole)]) == 0
    with marked_cluster(num_cpus=2):
        killer = threading.Thread(target=kill, args=(2,), daemon=True)
        killer.start()
        assert main([*given, str(out), "--actors", "2"]) == 0
        killer.join(1)
        assert not killer.is_alive()
    expected, found = contents(whole), contents(out)
    assert found.keys() == expected.keys()
    assert [name for name in found if found[name] != expected[name]] == []
