"""Sampling by a `SamplingConfig`, on games whose lengths are written down by hand."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from stable_baselines3.common.logger import Logger
from torch import Tensor

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.callbacks.conditions import LastLogged
from sb3_ext.checkpoints.resume import resume, save_run
from sb3_ext.ddqn import DDQN
from sb3_ext.off_policy.collector import ParallelStep, TensorCollector
from sb3_ext.off_policy.sampled import SampledCollector, WholeGames
from sb3_ext.off_policy.sampling import SamplingConfig
from tests.fakes import ToyVectorEnv
from tests.sb3_ext.ddqn.helpers import make_model, same, weights

LENGTHS = ((1, 3, 2), (2, 2, 5), (4,), (1, 1, 6))
"""Moves of the games of four rows, one after the other and again from the beginning."""


class Written(VectorEnv):
    """Shows row, game and move; what is done changes nothing."""

    knows_masks = True

    def __init__(self) -> None:
        self.num_envs = len(LENGTHS)
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.single_observation_space = spaces.Box(0.0, np.inf, (3,), np.float32)
        self.single_action_space = spaces.Discrete(2)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.device = torch.device("cpu")
        self.game, self.move = torch.zeros(2, self.num_envs)
        self.asked: list[Tensor] = []

    def _shown(self) -> Tensor:
        return torch.stack([torch.arange(self.num_envs).float(), self.game, self.move], 1)

    def _restart(self, rows: Tensor) -> None:
        self.game, self.move = self.game + rows, torch.where(rows, 0.0, self.move)

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Tensor, dict[str, Any]]:
        mask = (options or {}).get("reset_mask")
        if mask is None or not self.knows_masks:
            self.game, self.move = torch.zeros(2, self.num_envs)
        else:
            self._restart(mask)
        return self._shown(), {}

    def step(self, actions: Tensor) -> tuple[Any, ...]:
        self.asked.append(actions)
        self.move = self.move + 1
        lengths = [row[int(game) % len(row)] for row, game in zip(LENGTHS, self.game, strict=True)]
        ended = self.move >= torch.tensor(lengths)
        info = {}
        if bool(ended.any()):
            info = {"final_obs": self._shown(), "_final_obs": ended}
        reward = self.move.clone()
        self._restart(ended)
        return self._shown(), reward, ended, torch.zeros_like(ended), info

    def state_dict(self) -> dict[str, Any]:
        return {"game": self.game, "move": self.move}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.game, self.move = state["game"], state["move"]


def written(**arguments: Any) -> DDQN:
    model = make_model(TensorVecEnv(Written()), **arguments)
    model.verbose = 0
    return model


class Recording(SampledCollector):
    """Keeps what it gave."""

    def collect(self, num_steps: int) -> Any:
        self.epochs = [*getattr(self, "epochs", []), []]
        for step in super().collect(num_steps):
            self.epochs[-1].append(step)
            yield step


def sampled(transitions: int = 400, **sampling: Any) -> tuple[Recording, DDQN]:
    collector, model = Recording({"num_epoch_samples": 16, **sampling}), written()
    model.learn(transitions, collector=collector)
    return collector, model


def games_of(steps: list[ParallelStep]) -> list[list[tuple[Any, ...]]]:
    """The transitions of each row, cut after each game: place, reward, what came, how it ended."""
    games: list[list[tuple[Any, ...]]] = []
    for row in range(len(LENGTHS)):
        games.append([])
        for step in steps:
            terminated, truncated = bool(step.terminated[row]), bool(step.truncated[row])
            came = tuple(step.next_observations[row].int().tolist())
            place = tuple(step.observations[row].int().tolist())
            games[-1].append((place, float(step.rewards[row]), came, terminated, truncated))
            if terminated or truncated:
                assert step.episode is not None
                assert bool(step.episode["ended"][row])
                length = len(games[-1])
                assert int(step.episode["l"][row]) == length
                assert float(step.episode["r"][row]) == length * (length + 1) / 2
                games.append([])
        if not games[-1]:
            games.pop()
    return games


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"num_epoch_samples": 0}, "num_epoch_samples"),
        ({"num_epoch_samples": 2.5}, "num_epoch_samples"),
        ({"min_batch_size": 0}, "min_batch_size"),
        ({"max_batch_size": 0}, "max_batch_size"),
        ({"min_batch_size": 5, "max_batch_size": 4}, "min_batch_size must be at most max_batch_s"),
        ({"max_wait_time": 0}, "max_wait_time"),
        ({"min_trajectory_length": 0}, "min_trajectory_length"),
        ({"min_trajectory_length": 9}, "min_trajectory_length must be at most num_epoch_samples"),
        (
            {"min_trajectory_length": 3, "max_trajectory_length": 2},
            "min_trajectory_length must be at most max_trajectory_length, 2, got 3",
        ),
        ({"force_sync": 1}, "force_sync must be true or false"),
        ({"optimal": "no"}, "optimal must be true or false"),
        ({"num_epoch_sample": 1}, "num_epoch_samples"),
    ],
)
def test_what_cannot_be_is_refused(values: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValueError, match=fault) as error:
        SampledCollector({"num_epoch_samples": 8, **values})
    assert str(error.value).startswith("sampling")
    assert "\n" not in str(error.value)


def test_plain_sampling_is_collecting_without() -> None:
    """The same run bit for bit."""
    plain, other = (
        make_model(TensorVecEnv(ToyVectorEnv(8)), train_freq=4, exploration_rate=0.3) for _ in "ab"
    )
    plain.learn(800)
    sampling = SamplingConfig(num_epoch_samples=32, min_batch_size=8, max_batch_size=100)
    collector = SampledCollector(sampling)
    other.learn(800, collector=collector)
    assert other.num_updates == plain.num_updates > 20
    assert same(weights(plain), weights(other))
    assert torch.equal(plain._last_obs, other._last_obs)
    assert collector.statistics == {"epochs": 25, "samples": 800, "late_epochs": 0, "cut_games": 0}


def test_an_epoch_is_a_collection_and_its_updates() -> None:
    collector, model = sampled(400, num_epoch_samples=30)
    assert {len(steps) for steps in collector.epochs} == {8}  # 32 is the next number of rows
    assert model.num_timesteps == 416
    assert collector.statistics["epochs"] == 13
    # As without: one update for every parallel step after the first 64 transitions.
    assert model.num_updates == (416 - 64) // 4


@pytest.mark.parametrize("shortest", [2, 3, 5])
def test_short_games_are_dropped_and_counted(shortest: int) -> None:
    collector, model = sampled(200, min_trajectory_length=shortest)
    steps = [step for epoch in collector.epochs for step in epoch]
    games = games_of(steps)
    for game in games:
        row, number = game[0][0][:2]
        length = LENGTHS[row][number % len(LENGTHS[row])]
        assert length >= shortest
        assert [each[0] for each in game] == [(row, number, move) for move in range(len(game))]
        assert [each[2] for each in game] == [(row, number, m + 1) for m in range(len(game))]
        assert game[-1][3] == (len(game) == length)  # or it goes on in what is not given yet
    complete = [game for game in games if game[-1][3]]
    assert len({game[0][0] for game in games}) == len(games) > 20
    assert len(complete) >= len(games) - len(LENGTHS)
    # What was played, counted by hand from the moves made.
    played = len(model.get_env().venv.asked)
    short = kept = moves = 0
    for row in LENGTHS:
        left, number = played, 0
        while left >= (length := row[number % len(row)]):
            left, number = left - length, number + 1
            short, moves = short + (length < shortest), moves + length * (length < shortest)
            kept += length >= shortest
    counted = collector.statistics
    assert (counted["short_games"], counted["short_transitions"]) == (short, moves)
    assert counted["games"] == kept
    assert short > 0


def test_rows_stay_level_when_one_has_only_short_games() -> None:
    """The third row alone has games of four moves, the second every third one of five."""
    games = WholeGames(4)
    collector = TensorCollector(*_parts(written()))
    given = sum(len(games.add(collector.step())) for _ in range(300))
    state = games.state_dict()
    waiting = [lane.shape[1] for lane in state["lanes"]]
    assert max(waiting) - min(waiting) <= 6
    assert len(state["held"]) <= 40
    kept = 300 + 300 * 5 / 9 + 300 * 6 / 8
    assert abs(4 * given - kept) <= 60


def _parts(model: DDQN) -> tuple[Any, ...]:
    explorer = model.explorer_elsewhere()
    explorer.exploration_rate = None
    return model.get_env(), explorer, model.legal_actions, torch.Generator()


def test_long_games_are_cut_and_the_others_go_on() -> None:
    collector, _ = sampled(400, max_trajectory_length=3)
    games = games_of([step for epoch in collector.epochs for step in epoch])
    cut = 0
    for game in games[:]:
        row, number = game[0][0][:2]
        wanted = LENGTHS[row][number % len(LENGTHS[row])]
        assert [each[0] for each in game] == [(row, number, move) for move in range(len(game))]
        if len(game) < min(wanted, 3):
            continue  # the last one of its row
        assert len(game) == min(wanted, 3)
        assert game[-1][2] == (row, number, len(game))  # before the restart
        assert game[-1][3:] == (wanted <= 3, wanted > 3)
        cut += wanted > 3
    # A game is followed by the next one, which counts a restart as one game.
    numbers = [game[0][0][1] for game in games if game[0][0][0] == 2]
    assert numbers == list(range(len(numbers)))
    assert collector.statistics["cut_games"] == cut > 20


@pytest.mark.parametrize("rule", [{"max_batch_size": 3}, {"min_trajectory_length": 2}])
def test_rows_that_do_not_explore_have_to_keep_their_places(rule: dict[str, int]) -> None:
    collector = SampledCollector({"num_epoch_samples": 16, **rule})
    with pytest.raises(ValueError, match=f"^sampling: {next(iter(rule))} must be .*evaluation_ro"):
        written(evaluation_rows=1).learn(40, collector=collector)
    written(evaluation_rows=1).learn(40, collector=SampledCollector({"num_epoch_samples": 16}))


def test_an_environment_that_starts_all_rows_cannot_be_cut() -> None:
    model = written()
    model.get_env().venv.knows_masks = False
    collector = SampledCollector({"num_epoch_samples": 16, "max_trajectory_length": 2})
    with pytest.raises(ValueError, match=r"reset_mask: .* starts other rows too"):
        model.learn(100, collector=collector)


def test_the_network_is_asked_in_parts() -> None:
    asked: list[int] = []
    env, explorer, legal, generator = _parts(written())
    explorer.exploration_rate = 0.0
    forward = explorer.network.forward
    explorer.network.forward = lambda x: asked.append(len(x)) or forward(x)  # type: ignore[method-assign]
    whole = TensorCollector(env, explorer, legal, generator).step().actions
    env.reset()
    sampling = SamplingConfig(8, min_batch_size=1, max_batch_size=3)
    parted = TensorCollector(env, explorer, legal, generator, sampling=sampling).step().actions
    assert asked == [4, 2, 2]
    assert torch.equal(whole, parted)
    for less in ({"min_batch_size": 5}, {"min_batch_size": 3, "max_batch_size": 3}):
        with pytest.raises(ValueError, match=r"sampling: min_batch_size must be at most [42]"):
            written().learn(100, collector=SampledCollector({"num_epoch_samples": 8, **less}))


def test_optimal_play_does_not_explore() -> None:
    model = written(exploration_rate=1.0)
    collector = Recording({"num_epoch_samples": 16, "optimal": True})
    before = copy.deepcopy(model.q_net)
    model.learn(64, collector=collector)  # none of it with updates: `learning_starts` is 64
    for step in collector.epochs[0]:
        with torch.no_grad():
            assert torch.equal(step.actions, before(step.observations).argmax(1))


def test_an_epoch_that_takes_too_long_ends_with_what_there_is() -> None:
    collector, model = sampled(40, max_wait_time=1e-9)
    assert {len(steps) for steps in collector.epochs} == {1}
    assert collector.statistics["late_epochs"] == collector.statistics["epochs"] == 10
    assert model.num_timesteps == 40
    patient, _ = sampled(40, max_wait_time=1e6)
    assert patient.statistics["late_epochs"] == 0


def test_games_that_are_all_too_short_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sb3_ext.off_policy.sampled.HOPELESS", 20)
    with pytest.raises(ValueError, match=r"min_trajectory_length: none of the last 8\d games"):
        sampled(400, min_trajectory_length=9)


def test_counts_are_logged() -> None:
    logged, model = LastLogged(), written()
    model.set_logger(Logger(None, [logged]))
    collector = SampledCollector({"num_epoch_samples": 16, "min_trajectory_length": 3})
    model.learn(200, collector=collector)
    found = {key: logged.values[f"collector/{key}"] for key in collector.statistics}
    assert found == collector.statistics
    assert found["short_games"] > 0
    assert found["samples"] == model.num_timesteps >= 200


@pytest.mark.parametrize("limits", [{}, {"max_trajectory_length": 3}])
def test_a_run_goes_on_exactly(tmp_path: Path, limits: dict[str, int]) -> None:
    """What is held back, counted and running is part of a checkpoint."""
    rules = {"num_epoch_samples": 16, "min_trajectory_length": 2, **limits}
    whole, first, second = written(n_steps=2), written(n_steps=2), written(n_steps=2)
    straight = SampledCollector(rules)
    whole.learn(320, collector=straight)
    first.learn(160, collector=SampledCollector(rules))
    save_run(first, tmp_path)
    resume(second, tmp_path)
    later = SampledCollector(rules)
    second.learn(320 - second.num_timesteps, collector=later, reset_num_timesteps=False)
    assert second.num_updates == whole.num_updates > 30
    assert same(weights(whole), weights(second))
    assert later.statistics == straight.statistics
