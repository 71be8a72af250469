"""Budgets: what is shipped is complete, and what is wrong is named in one line."""

from __future__ import annotations

import pytest

from sb3_ext.studies.attack import ConfigError, read_budget, shipped_budgets


def test_shipped_budgets():
    assert {"points5", "points20"} <= set(shipped_budgets())
    five, twenty = read_budget("points5"), read_budget("points20")
    assert five.game.max_num_points == 5
    assert twenty.game.max_num_points == 20
    assert five.game.max_value == twenty.game.max_value == 20
    for budget in (five, twenty):
        assert len(budget.responder.seeds) >= 3
        assert read_budget(budget.to_dict()) == budget


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["responder.updates=-1"], "responder.updates must be at least 0, got -1"),
        (["responder.updats=1"], "did you mean 'updates'"),
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
        (["exact.starts=20000"], "exact.starts must be at most test.games (500)"),
        (["name"], "--set must have the form dotted.key=value, got 'name'"),
    ],
)
def test_bad_budgets(settings, message):
    with pytest.raises(ConfigError) as error:
        read_budget("points5", settings)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_bad_files(tmp_path):
    file = tmp_path / "budget.yml"
    for text, message in (
        ("a: [", "budget.yml: "),
        ("- 1\n", "must hold a mapping"),
        ("name: x\n", "is missing"),
    ):
        file.write_text(text)
        with pytest.raises(ConfigError) as error:
            read_budget(file)
        assert message in str(error.value)
        assert "\n" not in str(error.value)
    with pytest.raises(ConfigError, match=r"budget: there is no file .* among .*points5"):
        read_budget("point5")
    with pytest.raises(ConfigError, match="budget must be"):
        read_budget(3)  # type: ignore[arg-type]
