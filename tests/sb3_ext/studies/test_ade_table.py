"""The table of the sixteen singularities, on few of them and with hosts that need no training."""

from __future__ import annotations

import json

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
    assert (first.name, second.name) == ("A1", "E8")
    assert second.polynomial == "x² + y³ + z⁵"
    assert (second.least_depth, second.fewest_nodes) == (7, 54)
    assert second.zeillinger == Size(13, 91)
    assert second.trained == second.zeillinger
    assert first.least_depth <= first.zeillinger.depth
    assert first.fewest_nodes <= first.zeillinger.nodes


def test_optimal_host_reaches_the_least_depth():
    (row,) = table("optimal", ["D4"])
    assert row.trained.depth == row.least_depth
    assert row.trained.cut is None


def test_cut_trees_are_named_so():
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
        assert row["trained"]["depth"] == tree.depth
        assert row["trained"]["nodes"] == tree.num_nodes
        assert (row["trained"]["cut"] is None) == tree.complete


def test_training_saves_the_host_that_is_shown(tmp_path, monkeypatch, capsys):
    def small(updates, seed, opponent):
        model = make_model(updates, seed, opponent)
        model.learning_starts, model.batch_size = 256, 32
        return model

    monkeypatch.setattr(ade_table, "make_model", small)
    host = tmp_path / "new" / "host.zip"
    rest = ["--names", "A2", "--max-depth", "5", "--markdown"]
    assert main(["--updates", "4", "--save", str(host), *rest]) == 0
    first = capsys.readouterr().out
    assert first.splitlines()[1].startswith("|---|---:|")
    assert main(["--model", str(host), *rest]) == 0
    assert capsys.readouterr().out == first


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--names", "E9"], "name must be A_n"),
        (["--model", "nowhere.zip"], "nowhere.zip"),
        (["--updates", "0"], "updates must be a whole number of at least 1, got 0"),
        (["--seed", "-1"], "seed must be a whole number of at least 0, got -1"),
    ],
)
def test_bad_input_is_one_line(arguments, expected, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert expected in error
    assert error.count("\n") == 1
