"""The results page."""

from __future__ import annotations

import json
from pathlib import Path

from sb3_ext.studies import results
from sb3_ext.studies.attack.table import Results, markdown
from sb3_ext.studies.teach import measures

DOCS = Path(__file__).resolve().parents[3] / "docs"
SMALL = [
    "--positions", "800", "--larger", "3", "--brieskorn-pham", "3", "--games", "30",
    "--names", "A2", "D4", "--picture", "A2", "--workers", "1",
]  # fmt: skip


def test_the_page_shows_what_was_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(measures, "DRAWN_BATCHES", 1)
    attack = tmp_path / "attack.json"  # none was made yet
    arguments = ["--out", str(tmp_path / "docs"), "--host", "random_host=random", *SMALL]
    assert results.main([*arguments, "--attack", str(attack)]) == 0
    found = json.loads((tmp_path / "docs/results.json").read_text())
    assert found["optima"] == {"A2": {"depth": 3, "nodes": 11}, "D4": {"depth": 4, "nodes": 19}}
    taught, zeillinger = found["hosts"]["taught"], found["hosts"]["zeillinger"]
    assert taught["trees"]["D4"] == {"depth": 4, "nodes": 19, "complete": True}
    assert zeillinger["trees"]["D4"]["depth"] == 8
    for host in found["hosts"].values():
        shares = host["held_out"]
        for part in ("by_points", "by_least_depth"):
            rows = [row for key, row in shares[part].items() if part != "by_points" or key <= "5"]
            assert sum(row["positions"] for row in rows) == shares["up_to_5_points"]["positions"]
            assert sum(row["optimal"] for row in rows) == shares["up_to_5_points"]["optimal"]
        assert host["brieskorn_pham"]["positions"] == 4
        assert set(host["rho"]) == {"choose_first", "choose_last", "random"}

    def right(host):
        drawn = host["held_out"]["as_drawn"]
        return drawn["optimal"] / drawn["positions"]

    # A network that learned nothing would not pass.
    assert right(taught) > 0.9 > right(zeillinger) > right(found["hosts"]["random_host"])

    page = (tmp_path / "docs/results.md").read_text()
    assert "| D4 | 4 | 19 | 8 | 31 |" in page
    assert "No results yet." in page
    for file, _ in found["pictures"]:
        assert f"images/{file}" in page
        assert (tmp_path / "docs/images" / file).read_text().startswith("<svg")
    assert results.page(found, "| table |").count("| table |") == 1


def test_the_page_in_docs_shows_its_data():
    found = json.loads((DOCS / "results.json").read_text(encoding="utf-8"))
    tables = markdown(Results(DOCS / "attack.json"))
    assert results.page(found, tables) == (DOCS / "results.md").read_text(encoding="utf-8")
    assert found["setup"]["command"].startswith("python -m sb3_ext.studies.results --out docs")
