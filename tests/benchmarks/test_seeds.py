"""The interquartile mean and its bootstrap, and the tables of the scoreboard."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.seeds import BEGIN, iqm, overall, tables, task_table, with_tables
from resgym.scoreboard import read_rows, shipped_rows

PAGE = Path(__file__).resolve().parents[2] / "docs" / "scoreboard.md"


def test_the_middle_half_counts():
    assert iqm([9, 1, 2, 3]) == 2.5  # 1 and 9 are left out
    assert iqm([1, 2, 6]) == pytest.approx((0.25 * 1 + 2 + 0.25 * 6) / 1.5)
    assert iqm([7]) == 7


def test_the_seeds_of_a_method_are_one_row():
    (row,) = [each for each in shipped_rows() if (each.name, each.task) == ("played", "worst-20")]
    values = {"ppo": [0.0, 0.1, 0.2], "ddqn": [0.5, 0.3, 0.4]}
    rows = [
        replace(row, name=f"{name}, seed {seed}", value=value, steps=1000)
        for name, own in values.items()
        for seed, value in enumerate(own)
    ]
    gap = f"{row.details['exploitability']:.2f}", f"{row.details['cut']:.0f}"
    assert task_table([*rows, replace(row, steps=None, value=1.0)]) == [
        ("player", "method", "result", "exploitability", "over 200 moves"),
        ("played", "play", str(replace(row, value=1.0)), *gap),
        ("ddqn", "play, 1,000 steps, 3 seeds", "0.400 (0.300 to 0.500)", *gap),
        ("ppo", "play, 1,000 steps, 3 seeds", "0.100 (0.000 to 0.200)", *gap),
    ]
    assert [name for name, *_ in overall([*rows, row])] == ["player", "ddqn", "ppo"]


def test_the_page_shows_the_file():
    text = PAGE.read_text(encoding="utf-8")
    rows = read_rows(PAGE.with_suffix(".json"))
    assert with_tables(text, rows) == text
    shown = [table.splitlines() for table in tables(rows)]
    assert len(shown) > 9
    assert shown[0][0] == "### worst-5: hosts"
    assert not [line for lines in shown for line in lines if "| - |" in line or "| ? |" in line]
    assert BEGIN in text
