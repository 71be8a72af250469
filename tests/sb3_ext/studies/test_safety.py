"""Safety and quickness of hosts, as a table and a picture."""

from __future__ import annotations

import json

import resgym
from resgym.measure.rho import rho_starts
from sb3_ext.studies import safety


def test_the_table_shows_what_was_measured(tmp_path, capsys):
    data, plot = tmp_path / "safety.json", tmp_path / "safety.svg"
    hosts = ["safe", "zeillinger"]
    arguments = ["--json", str(data), "--starts", "2", "--games", "5", "--hosts"]
    assert safety.main([*arguments, "zeillinger"]) == 0
    assert safety.main([*arguments, *hosts, "--plot", str(plot)]) == 0
    found = json.loads(data.read_text())
    starts = rho_starts(resgym.GameSpec(), 2, 2).point_lists()
    least = sum(resgym.solve(points).value for points in starts) / 2
    assert found["safe"]["worst_moves"] == [least, least]
    assert found["zeillinger"]["worst_moves"][0] > least
    assert found["safe"]["rho"]["random"] == resgym.rho("safe", "random", games=5).rho
    printed = capsys.readouterr()
    assert f"| safe | {least:.2f} | {1 / least:.4f} |" in printed.out
    assert printed.err.count("measuring zeillinger") == 1  # the second time it is in the file
    assert all(host in plot.read_text() for host in hosts)
