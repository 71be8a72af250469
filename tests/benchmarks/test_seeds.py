"""The interquartile mean and its bootstrap."""

from dataclasses import replace

import pytest

from benchmarks.seeds import iqm, table
from resgym.scoreboard import shipped_rows, write_rows


def test_the_middle_half_counts():
    assert iqm([9, 1, 2, 3]) == 2.5  # 1 and 9 are left out
    assert iqm([1, 2, 6]) == pytest.approx((0.25 * 1 + 2 + 0.25 * 6) / 1.5)
    assert iqm([7]) == 7


def test_the_table_is_made_of_the_rows_of_a_scoreboard(tmp_path):
    row = shipped_rows()[0]
    values = {"ppo": [0.0, 0.1, 0.2], "ddqn": [0.5, 0.3, 0.4]}
    rows = [
        replace(row, name=f"{name}, seed {seed}", value=value)
        for name, own in values.items()
        for seed, value in enumerate(own)
    ]
    write_rows(tmp_path / "mine.json", [*rows, replace(row, name="no seed")])
    head, first, second = table(tmp_path / "mine.json")
    assert head == ("player", row.task, "IQM (95 %)")
    assert first[:2] == ("ddqn", "0.400 (0.300 to 0.500), 3 seeds")
    assert second[0] == "ppo"
