"""Games written down to be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from resgym.measure.games import sample_games
from sb3_ext.callbacks import SampleGames
from sb3_ext.schedules.frequency import Every
from tests.sb3_ext.callbacks.helpers import SIZES, game_model


@pytest.mark.parametrize("seat", ["host", "agent"])
def test_files(seat: str, tmp_path: Path) -> None:
    opponents = ["choose_first", "random"] if seat == "host" else ["zeillinger", "all_coord"]
    samples = SampleGames(tmp_path, opponents, Every(updates=10), games=2, max_value=6)
    model = game_model(seat)
    model.learn(240, samples)
    folders = sorted((tmp_path / "games").iterdir())
    assert folders == samples.written
    assert [int(folder.name) for folder in folders] == [10, 20, model._n_updates]
    for folder in folders:
        assert sorted(p.name for p in folder.iterdir()) == sorted(
            f"{name}{suffix}" for name in opponents for suffix in (".json", ".txt")
        )
        for name in opponents:
            text = (folder / f"{name}.txt").read_text()
            updates = int(folder.name)
            assert text.startswith(f"trained {seat} against {name}, after {updates} updates\n")
            assert [f"\ngame {number}\n\nstart\n" in text for number in (1, 2, 3)] == [1, 1, 0]
            for game in json.loads((folder / f"{name}.json").read_text()):
                assert len(game["positions"]) == game["moves"] + 1
                assert game["finished"] == (len(game["positions"][-1]) == 1)
    starts = [
        [game["positions"][0] for game in json.loads((folder / f"{opponents[0]}.json").read_text())]
        for folder in folders
    ]
    assert starts[0] == starts[1] == starts[2]
    assert starts[0][0] != starts[0][1]


def test_same_seed_same_games() -> None:
    def games(seed: int) -> list[Any]:
        return [r.to_dict() for r in sample_games("random", "random", seed=seed, **SIZES)]

    assert games(1) == games(1)
    assert games(1) != games(2)
    longer = sample_games("random", "random", games=5, seed=1, **SIZES)
    assert [record.to_dict() for record in longer[:3]] == games(1)


def test_bad_arguments(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="games must be a whole number of at least 1"):
        SampleGames(tmp_path, ["random"], Every(updates=1), games=0)
    with pytest.raises(ValueError, match="games must be at least 1, got 0"):
        sample_games("random", "random", games=0)
