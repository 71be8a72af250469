"""Every example runs, is short, and does what it says at a small size."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_examples_are_short_and_tested(path: Path) -> None:
    assert len(path.read_text().splitlines()) < 50
    assert f'load("{path.stem}")' in Path(__file__).read_text()


def test_play_one_game(capsys: pytest.CaptureFixture[str]) -> None:
    moves = load("play_one_game").main(seed=3)
    assert 1 <= moves <= 200
    assert f"after {moves} moves" in capsys.readouterr().out


def test_train_host_beats_an_untrained_one() -> None:
    # all_coord, which untrained networks resemble, has 0.0006; the random host 0.0405.
    assert load("train_host").main(timesteps=80_000) > 0.06


def test_maskable_ppo_plays_legally() -> None:
    assert 0.0 < load("maskable_ppo").main(timesteps=8_192) < 0.25


def test_custom_reward_is_what_the_environment_pays() -> None:
    # A random host removes a point or less a move, on average.
    assert -0.5 < load("custom_reward").main(steps=40) < 1.5


def test_custom_opponent_joins_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    results = load("custom_opponent").main(games=200)
    assert "tallest_axis" in capsys.readouterr().out
    assert results["zeillinger"] > results["random"] > 0


def test_two_player_saves_players_that_play(capsys: pytest.CaptureFixture[str]) -> None:
    rho = load("two_player").main(steps=40, games=30)
    assert 0 < rho < 0.5
    output = capsys.readouterr().out
    assert "host-agent" in output
    assert "zeillinger-agent" in output


def test_custom_algorithm_learns_with_its_bonus() -> None:
    trainer = load("custom_algorithm").main(steps=20, games=30)
    for learner in trainer.roles.values():
        model = learner.model
        assert type(model).__name__ == "Munchausen"
        assert model.alpha == 0.5
        assert learner.updates == 20
        batch = model.replay_buffer.sample(64)
        target = model._compute_target(batch)
        plain = super(type(model), model)._compute_target(batch)
        # The bonus is a clipped log-probability: never positive, at most alpha below.
        assert bool((target <= plain).all())
        assert bool((target >= plain - 0.5).all())
        assert bool((target < plain).any())


def test_symmetric_game_is_solved_by_both_roles() -> None:
    # Untrained networks pick anything; the pick that nobody can exploit is the last one.
    assert load("symmetric_game").main(steps=200) == {"left": [0, 0, 100], "right": [0, 0, 100]}
