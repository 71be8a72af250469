"""The command: it teaches, stops, goes on bit for bit, and leaves a player."""

import json
from dataclasses import replace

import pytest
import torch
import yaml

import resgym
from resgym.benchmark import Solved
from sb3_ext.checkpoints.resume import init_from
from sb3_ext.runs.checkpoint import list_checkpoints, read_checkpoint
from sb3_ext.runs.driver import Run, go
from sb3_ext.teach import positions, teach
from sb3_ext.teach.positions import TeachConfig
from sb3_ext.train.loading import load_player
from tests.sb3_ext.helpers import equal, teach_config, weights


@pytest.fixture(autouse=True, scope="module")
def small_pieces():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(positions, "BATCH_ROWS", 400)
        patch.setattr(positions, "WALKED_ROWS", 20)
        patch.setattr(teach, "PIECE", 16)
        yield


def run(folder, *more, **changes):
    """The command; its run is the folder ``out``."""
    file = folder / "teach.yml"
    file.write_text(yaml.safe_dump({**teach_config(folder), **changes}))
    given = ["--config", str(file), "--out", str(folder / "out"), "--no-progress"]
    return teach.main([*given, *more])


def networks(folder):
    return read_checkpoint(folder / "out" / "checkpoints")[1]["policy"]


def history(folder):
    return json.loads((folder / "out" / "results.json").read_text())["history"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run from the beginning to its end."""
    folder = tmp_path_factory.mktemp("whole")
    assert run(folder) == 0
    return folder


def test_a_run_is_a_player_and_a_beginning(whole):
    assert [entry["update"] for entry in history(whole)] == [10, 20, 30, 40]
    assert resgym.resolution_tree("A2", load_player(whole / "out", "host"), max_depth=8).depth
    other = teach.Teach(TeachConfig.read({**teach_config(whole), "seed": 5}), Run()).model
    init_from(other, whole / "out")
    assert equal(weights(other), networks(whole))
    first, second = (
        {tuple(row) for row in Solved.load(whole / f"out/solved-{n}.npz").points.flatten(1)}
        for n in (0, 1)
    )
    assert len(first) > 50
    assert first.isdisjoint(second)


@pytest.mark.parametrize("updates", [20, 31])
def test_a_stopped_run_goes_on_bit_for_bit(updates, whole, tmp_path):
    assert run(tmp_path, "--stop", f"max_updates={updates}") == 0
    assert list_checkpoints(tmp_path / "out/checkpoints")[0].name.endswith(f"{updates:03d}")
    assert run(tmp_path) == 0
    assert equal(networks(tmp_path), networks(whole))
    assert history(tmp_path) == history(whole)


def test_finished_pieces_of_a_round_stay(tmp_path, monkeypatch):
    solve = teach.solve
    calls = []

    def once(*given):
        calls.append(1)
        if len(calls) == 3:
            raise OSError("no space left")
        return solve(*given)

    monkeypatch.setattr(teach, "solve", once)
    assert run(tmp_path, "--set", "updates=0") == 1
    assert len(list((tmp_path / "out/solved-0").iterdir())) == 2
    assert run(tmp_path, "--set", "updates=0") == 0
    assert len(calls) == 3 + 4 - 2
    assert not (tmp_path / "out/solved-0").exists()


def test_the_seed_decides_and_every_part_matters(tmp_path):
    def taught(**changes):
        given = teach_config(tmp_path)
        given = {**given, "rounds": given["rounds"][:1], **changes}
        folder = tmp_path / str(given["seed"])  # its positions are solved once
        folder.mkdir(exist_ok=True)
        job = teach.Teach(TeachConfig.read(given), Run(folder))
        go(job)
        return weights(job.model)

    again = taught()
    assert equal(again, taught())
    for other in ({"seed": 2}, {"value_weight": 0.0}, {"updates": 19}):
        assert not equal(again, taught(**other))


@pytest.mark.learning
@pytest.mark.parametrize(
    ("seat", "demanded"), [("host", 0.7), pytest.param("agent", 0.75, marks=pytest.mark.long)]
)
def test_it_learns_positions_it_has_not_seen(seat, demanded, tmp_path, monkeypatch):
    """Against the control, who is taught the moves of other positions."""
    given = teach_config(tmp_path, seat)
    start = {**given["rounds"][0][0], "positions": 400}
    given |= {"rounds": [[start]], "updates": 150, "batch_size": 128, "every": 150}

    def share():
        job = teach.Teach(TeachConfig.read(given), Run(tmp_path))
        go(job)
        return job.history[-1]["teach/right"]

    taught, drawn = share(), Solved.drawn
    monkeypatch.setattr(Solved, "drawn", lambda data, *more: drawn(shuffled(data), *more))
    assert share() < demanded < taught


def shuffled(data):
    """The same costs, given to the positions in another order."""
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(1))
    return replace(data, costs=data.costs[order], after=data.after[order])


def test_small_trees_may_be_taught_in_place_of_short_games(tmp_path):
    assert run(tmp_path, "--stop", "max_updates=2", objective="nodes", value_weight=0.0) == 0
    data = Solved.load(tmp_path / "out/solved-0.npz")
    row = int(data.value.argmax())
    points = data.points[row, : data.count[row]].tolist()
    assert int(data.value[row]) == resgym.solve(points, "nodes").value


def test_a_loss_that_is_no_number_ends_it(tmp_path, capsys):
    assert run(tmp_path, "--set", "learning_rate=1.0e+38") == 1
    assert "NaN or infinite" in capsys.readouterr().err
    assert not list_checkpoints(tmp_path / "out/checkpoints")


@pytest.mark.parametrize("name", TeachConfig.shipped())
def test_shipped_files_are_valid(name):
    job = teach.Teach(TeachConfig.read(name), Run())
    assert TeachConfig.read(job.config.to_dict()) == job.config
