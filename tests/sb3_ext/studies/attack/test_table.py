"""The table grows, attacks nobody twice, and the page shows what is in the file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from unittest.mock import Mock

import pytest

import sb3_ext.studies.attack.table as module
from sb3_ext.studies.attack import ConfigError
from sb3_ext.studies.attack.result import ExactResult
from sb3_ext.studies.attack.table import Results, fill, markdown
from tests.sb3_ext.studies.attack.helpers import small

DOCS = Path(__file__).resolve().parents[4] / "docs"
BUDGET = small("responder.updates=0", "exact.starts=4")


def cells(text: str, player: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {player} |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_rows_are_added_and_kept(tmp_path, monkeypatch):
    counted = Mock(wraps=module.exploit)
    monkeypatch.setattr(module, "exploit", counted)
    file = tmp_path / "results.json"
    fill(Results(file), [("zeillinger", "host", None)], [BUDGET], tmp_path)
    players = [("zeillinger", "host", None), ("random", "host", None), ("random", "agent", "dice")]
    results = Results(file)
    fill(results, players, [BUDGET], tmp_path)
    attacked = [call.args[0].name for call in counted.call_args_list]
    assert attacked == ["zeillinger", "random", "dice"]
    assert Results(file).rows == results.rows
    assert "histogram" not in file.read_text()

    text = markdown(results)
    assert text.index("hosts under attack") < text.index("agents under attack")
    row = cells(text, "zeillinger")
    saved = next(row for row in results.rows if row["player"] == "zeillinger")
    assert row[1] == row[5] == f"{saved['exact']['lowest']['rho']:.4f}"
    assert row[6] == f"{saved['exact']['lowest']['mean_length']:.2f}"
    # What is proved needs no training; what cannot be is trained against.
    assert (row[3:5], row[-1]) == (["proof", "-"], "0")
    assert cells(text, "random")[5] == "-" != cells(text, "random")[4]
    # The strongest host first.
    worst = [row["worst"]["rho"] for row in results.rows if row["role"] == "host"]
    assert (text.index("| zeillinger") < text.index("| random")) == (worst[0] > worst[1])

    # The saved responder is a host, and can be attacked itself; another player of a name that is
    # there takes the place of the old one.
    path = str(tmp_path / "small" / "agent-dice" / "seed-0")
    fill(results, [(path, None, "mine")], [BUDGET], tmp_path / "more")
    assert len(results.rows) == 4
    fill(results, [("all_coord", "host", "mine")], [BUDGET], tmp_path / "again")
    assert len(results.rows) == 4
    assert cells(markdown(results), "mine")


def test_players_are_checked_before_any_attack(tmp_path):
    players = [("zeillinger", "host", None), ("nobody", None, None)]
    with pytest.raises(ConfigError, match="player: "):
        fill(Results(tmp_path / "results.json"), players, [BUDGET], tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["{", "{}", "7", "[1]", '[{"player": "a"}]', "[null]"])
def test_files_that_are_no_results(text, tmp_path):
    file = tmp_path / "results.json"
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"^.*results.json holds no results.*$"):
        Results(file)


def test_a_changed_row_is_noticed(tmp_path):
    file = tmp_path / "attack.json"
    text = (DOCS / "attack.json").read_text(encoding="utf-8")
    digits = [match.start() for match in re.finditer(r"[0-9]", text)]
    for place in digits[:: len(digits) // 60]:
        other = "7" if text[place] != "7" else "3"
        changed = text[:place] + other + text[place + 1 :]
        if json.loads(changed) == json.loads(text):  # beyond the precision of a number
            continue
        file.write_text(changed)
        with pytest.raises(ConfigError, match="sha256: was changed after it was written"):
            Results(file)


def test_the_page_in_docs_shows_its_results():
    results = Results(DOCS / "attack.json")
    assert markdown(results) in (DOCS / "attack.md").read_text(encoding="utf-8")
    for setting in {row["setting"] for row in results.rows}:
        budgets = {json.dumps(row["budget"]) for row in results.rows if row["setting"] == setting}
        assert len(budgets) == 1, "players that are compared must have had the same budget"


def test_the_page_of_the_robust_host_says_what_the_attack_found():
    page = (DOCS / "robust.md").read_text(encoding="utf-8").split("## Its worst case")[1]
    rows = [row for row in Results(DOCS / "attack.json").rows if row["role"] == "host"]
    proved = {
        (row["player"], row["setting"]): ExactResult.model_validate(row["exact"]).figures()[0]
        for row in rows
        if row["exact"]
    }
    for player in ("taught", "zeillinger", "spivakovsky", "robust"):
        shown = cells(page, f"`{player}`")[1:3]
        assert shown == [proved[player, setting] for setting in ("points5", "points20")]
