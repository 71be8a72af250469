"""Roles that learn by PPO and its relatives, against roles that learn by DDQN."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import resgym
from sb3_ext.runs.driver import Run, go
from sb3_ext.train.loading import load_player
from sb3_ext.two_player import HostAgentTrainer, read_config
from sb3_ext.two_player.job import TwoPlayer
from tests.sb3_ext.ddqn.helpers import same, weights
from tests.sb3_ext.two_player.helpers import duel


def test_a_step_is_what_ppo_makes_of_one_rollout():
    """Recorded by a PPO of SB3 on the same transitions: same weights after the same updates."""
    players = HostAgentTrainer(duel("roles.host.learning_rate=1.0e-2"))
    learner = players.roles["host"]
    assert learner.collect() == 4 * 3
    buffer = learner.model.rollout_buffer
    advantages, before = buffer.advantages.copy(), weights(learner)
    # Of the last move: one TD error, lambda or not.
    last_values = learner.policy.predict_values(torch.as_tensor(learner.model._last_obs))
    running = 1.0 - learner.model._last_episode_starts
    expected = (
        buffer.rewards[-1]
        + 0.97 * last_values.detach().numpy().flatten() * running
        - buffer.values[-1]
    )
    np.testing.assert_allclose(advantages[-1], expected, rtol=1e-5, atol=1e-6)
    learner.update()
    assert learner.updates == 2  # epochs, as SB3 counts
    assert not same(before, weights(learner))
    assert not learner.policy.training
    assert learner.rollout_is_due()


def test_both_are_measured_counted_copied_and_played(tmp_path):
    config = read_config(duel("evaluation.keep_best=true", "training.steps=2"))
    job = TwoPlayer(config, Run(tmp_path / "run"))
    go(job)
    players = job.trainer
    (result,) = players.history
    assert list(result.values) == ["host-agent", "host-random", "random-agent"]
    assert sum(result.actions["host"]) > 0
    assert players.copy().evaluate_rho() == result.values
    sizes = {"max_num_points": 5, "max_value": 5, "games": 50, "seed": 3}
    live = resgym.rho(players.players["host"], "random", **sizes).rho
    for saved in ("best/host", "models/host.zip"):
        host = load_player(tmp_path / "run" / saved, "host")
        assert resgym.rho(host, "random", **sizes).rho == live


def test_replaced_rewards_are_learned_from_new_games_only():
    players = HostAgentTrainer(duel())
    players.train(1)
    players.replace_reward("host", lambda transition: torch.full((4,), 2.0))
    assert not players.roles["host"].has_experience
    players.train(1)
    assert (players.roles["host"].model.rollout_buffer.rewards == 2.0).all()


def test_what_on_policy_learners_cannot_do_is_said():
    players = HostAgentTrainer(duel())
    with pytest.raises(TypeError, match="networks of PPO cannot be replaced"):
        players.replace_nets(host=torch.nn.Linear(15, 4))
    with pytest.raises(ValueError, match="max_steps must be 3, got 5"):
        players.collect_rollout("host", max_steps=5)
