"""Budgets: what is shipped is complete, and what is wrong is named in one line."""

from __future__ import annotations

import pytest

from sb3_ext.studies.attack import ConfigError, read_budget, shipped_budgets


def test_shipped_budgets():
    assert {"points5", "points20"} <= set(shipped_budgets())
    for points in (5, 20):
        budget = read_budget(f"points{points}")
        assert (budget.game.max_num_points, budget.game.max_value) == (points, 20)
        assert len(budget.responder.seeds) >= 3
        assert budget.exact.starts >= 1000
        assert read_budget(budget.to_dict()) == budget
    for axes in (4, 5):
        game = read_budget(f"axes{axes}").game
        assert (game.dimension, game.max_num_points, game.max_moves) == (axes, 5, 200)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["responder.updates=-1"], "responder.updates must be at least 0, got -1"),
        (["responder.seeds=[]"], "responder.seeds must be at least 1 long, got []"),
        (["responder.seeds=[1, 1]"], "responder.seeds must be different from each other"),
        (["responder.net_arch=[x]"], "responder.net_arch"),
        (["responder.learning_rate=1e-3"], "responder.learning_rate"),
        (["responder.reward=big"], "responder.reward must be 'step'"),
        (["game.max_num_points=1"], "game.max_num_points must be at least 2"),
        (["game.dimension=11"], "game.dimension must be"),
        (["validation.seed=2"], "validation.seed must differ from test.seed"),
        (["scripted.agents=[choose_frist]"], "did you mean 'choose_first'"),
        (["responder.buffer_size=1000000000000000"], "responder.buffer_size: 1000000000000000"),
        (["exact.starts=0"], "exact.starts must be at least 1, got 0"),
    ],
)
def test_bad_budgets(settings, message):
    assert message in refusal("points5", settings)


def refusal(source, settings=()):
    with pytest.raises(ConfigError) as error:
        read_budget(source, settings)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_bad_files(tmp_path):
    file = tmp_path / "budget.yml"
    for text, message in (
        ("a: [", "budget.yml: "),
        ("- 1\n", "must hold a mapping"),
        ("name: x\n", "is missing"),
    ):
        file.write_text(text)
        assert message in refusal(file)
    assert "budget: there is no file 'point5', and none of this name among" in refusal("point5")
    assert "budget must be" in refusal(3)
