"""Roles that learn by PPO and its relatives, against roles that learn by DDQN."""

import numpy as np
import pytest
import torch

import resgym
from sb3_ext.networks.extractors import FlattenExtractor
from sb3_ext.runs.driver import Run, go
from sb3_ext.train.loading import load_player
from sb3_ext.two_player import HostAgentTrainer, read_config
from sb3_ext.two_player.job import TwoPlayer
from tests.sb3_ext.ddqn.helpers import same, weights
from tests.sb3_ext.two_player.helpers import duel


def test_an_update_is_made_of_one_rollout():
    extractor = "roles.host.policy_arguments={extractor: flatten}"
    players = HostAgentTrainer(duel("roles.host.learning_rate=1.0e-2", extractor))
    learner = players.roles["host"]
    assert type(learner.policy.features_extractor) is FlattenExtractor
    assert learner.collect() == 4 * 3
    buffer, before = learner.model.rollout_buffer, weights(learner)
    # The advantage of the last move is one TD error, lambda or not.
    last_values = learner.policy.predict_values(torch.as_tensor(learner.model._last_obs))
    running = 1.0 - learner.model._last_episode_starts
    later = 0.97 * last_values.detach().numpy().flatten() * running
    expected = buffer.rewards[-1] + later - buffer.values[-1]
    np.testing.assert_allclose(buffer.advantages[-1], expected, rtol=1e-5, atol=1e-6)
    learner.update()
    assert learner.updates == 2  # epochs, as SB3 counts
    assert not same(before, weights(learner))
    assert not learner.policy.training
    with pytest.raises(TypeError, match="networks of PPO cannot be replaced"):
        players.replace_nets(host=torch.nn.Linear(15, 4))


def test_both_are_measured_copied_and_played(tmp_path):
    config = read_config(duel("evaluation.keep_best=true", "training.steps=2"))
    job = TwoPlayer(config, Run(tmp_path / "run"))
    go(job)
    players = job.trainer
    assert players.copy().evaluate_rho() == players.history[0].values
    sizes = {"max_num_points": 5, "max_value": 5, "games": 50, "seed": 3}
    live = resgym.rho(players.players["host"], "random", **sizes).rho
    for saved in ("best/host", "models/host.zip"):
        host = load_player(tmp_path / "run" / saved, "host")
        assert resgym.rho(host, "random", **sizes).rho == live
