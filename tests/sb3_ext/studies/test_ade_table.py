"""The table of the sixteen singularities, on few of them and with hosts that need no training."""

from __future__ import annotations

import json
from unittest.mock import Mock

import pytest

import resgym
from sb3_ext.studies import ade_table
from sb3_ext.studies.ade_table import Size, main, table
from sb3_ext.training.quickstart import make_model


@pytest.fixture(scope="module")
def untrained(tmp_path_factory):
    path = tmp_path_factory.mktemp("host") / "host.zip"
    make_model(updates=3, seed=1, opponent="random").save(path)
    return str(path)


def test_learner_meets_the_named_agent():
    for name in ("random", "choose_last"):
        (agent,) = make_model(updates=3, seed=0, opponent=name).get_env().venv.unwrapped.opponents
        assert type(agent) is type(resgym.make_agent(name))


def test_zeillinger_beside_himself_and_the_optimum():
    first, second = table("zeillinger", ["A1", "E8"])
    assert second == ("E8", "x² + y³ + z⁵", 7, 54, Size(13, 91), Size(13, 91))
    assert first.name == "A1"
    assert first.least_depth <= first.zeillinger.depth
    assert first.fewest_nodes <= first.zeillinger.nodes


def test_an_optimal_host_and_trees_that_are_cut():
    (row,) = table("optimal", ["D4"])
    assert row.trained == Size(row.least_depth, row.trained.nodes, cut=None)
    (row,) = table("zeillinger", ["E8"], max_depth=3)
    assert row.trained.cut == "depth 3"
    assert row.cells()[-2:] == ("not finished at depth 3", f"> {row.trained.nodes}")
    (row,) = table("zeillinger", ["E8"], max_nodes=10)
    assert row.trained.cut == "10 nodes"
    assert row.zeillinger == Size(13, 91)


def test_saved_host(untrained, tmp_path, capsys):
    arguments = ["--model", untrained, "--names", "A1", "D4", "--max-depth", "6"]
    file = tmp_path / "table.json"
    assert main([*arguments, "--json", str(file)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed[1:]] == ["A1", "D4"]
    assert len({len(line) for line in printed}) == 1
    rows = json.loads(file.read_text())
    for row in rows:
        tree = resgym.resolution_tree(row["name"], untrained, max_depth=6, max_num_points=20)
        cut = None if tree.complete else "depth 6"
        assert row["trained"] == {"depth": tree.depth, "nodes": tree.num_nodes, "cut": cut}


def test_training_saves_the_host_that_is_shown(tmp_path, monkeypatch, capsys):
    small = make_model(4, 0, "random")
    small.learning_starts, small.batch_size = 256, 32
    made = Mock(return_value=small)
    monkeypatch.setattr(ade_table, "make_model", made)
    host = tmp_path / "new" / "host.zip"
    rest = ["--names", "A2", "--max-depth", "5", "--markdown"]
    assert main(["--updates", "4", "--seed", "0", "--save", str(host), *rest]) == 0
    made.assert_called_once_with(4, 0, "random", n_steps=1)
    first = capsys.readouterr().out
    assert first.splitlines()[1].startswith("|---|---:|")
    assert main(["--model", str(host), *rest]) == 0
    assert capsys.readouterr().out == first
