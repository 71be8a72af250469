"""Another algorithm, PPO too, optimiser or buffer by name; one encoder for both roles."""

from copy import deepcopy

import numpy as np
import pytest
import torch

import resgym
from sb3_ext.networks.extractors import FlattenExtractor
from sb3_ext.replay.buffers import TensorReplayBuffer
from sb3_ext.replay.prioritized import PrioritizedReplayBuffer
from sb3_ext.runs.driver import Run, go
from sb3_ext.train.loading import load_player
from sb3_ext.two_player import HostAgentTrainer, read_config
from sb3_ext.two_player.hironaka import ROLES
from sb3_ext.two_player.job import TwoPlayer
from tests.sb3_ext.helpers import equal, weights
from tests.sb3_ext.two_player.helpers import duel, tiny, trainer


def test_names_choose_the_buffer_and_the_optimiser():
    buffer = "{name: prioritized, size: 1000, arguments: {}}"
    optimizer = "{name: sgd, arguments: {momentum: 0.5}}"
    players = trainer(f"roles.host.replay_buffer={buffer}", f"roles.agent.optimizer={optimizer}")
    host, agent = players.roles.values()
    assert type(host.model.replay_buffer) is PrioritizedReplayBuffer
    assert type(agent.model.replay_buffer) is TensorReplayBuffer
    assert type(agent.policy.optimizer) is torch.optim.SGD
    assert agent.policy.optimizer.param_groups[0]["momentum"] == 0.5


@pytest.mark.parametrize(
    ("name", "host", "agent", "network"),
    [
        ("ddqn", "HostPolicy", "AgentPolicy", "q_net"),
        ("dqn", "MlpPolicy", "MultiInputPolicy", "q_net"),
        ("qrdqn", "MlpPolicy", "MultiInputPolicy", "quantile_net"),
    ],
)
def test_targets_follow_by_tau_before_the_fit_in_both_roles(name, host, agent, network):
    data = tiny("game.invalid_action=noop")
    for role, policy in (("host", host), ("agent", agent)):
        data["roles"][role] |= {
            "algorithm": name,
            "policy": policy,
            "policy_arguments": {},
            "algorithm_arguments": {},
            "target_update": {"every_updates": 3, "tau": 0.25},
            "learning_rate": {"schedule": "linear", "init": 0.01, "final": 0.0, "steps": 10},
        }
    players = HostAgentTrainer(data)
    policy = players.roles["host"].policy
    target = getattr(policy, f"{network}_target")
    online = {}
    first = deepcopy(target.state_dict())

    def note(each):
        if each.total_steps == 3:
            online.update(deepcopy(getattr(policy, network).state_dict()))

    players.train(4, callback=note)
    # The algorithm's own target updates are off; the trainer's came before updates 0 and 3.
    for key, now in target.state_dict().items():
        torch.testing.assert_close(now, 0.75 * first[key] + 0.25 * online[key])
    assert policy.optimizer.param_groups[0]["lr"] == pytest.approx(0.007)
    assert players.log_metrics()["host/loss"] >= 0
    assert not policy.training


def encoder(players, role):
    """Copies of the weights of a role's extractor, by name."""
    extractor = players.roles[role].policy.q_net.features_extractor
    return {name: value.detach().clone() for name, value in extractor.named_parameters()}


def unmoved(first, second):
    return {name for name in first.keys() & second.keys() if torch.equal(first[name], second[name])}


def test_both_roles_move_one_encoder_and_their_own_layers():
    point_sets = (f"roles.{role}.policy_arguments={{extractor: point_set}}" for role in ROLES)
    players = trainer("shared_encoder=true", *point_sets)
    before = encoder(players, "agent")
    shared = before.keys() - {"encoder.0.weight", "head.0.weight"}  # the host's axes enter there
    assert unmoved(encoder(players, "host"), before) == shared
    for role in ROLES:
        players.train(1, players=[role])
        after = encoder(players, "agent")
        assert shared <= before.keys() - unmoved(before, after)  # without an update of its own, too
        assert unmoved(encoder(players, "host"), after) == shared
        before = after
        policy = players.roles[role].policy
        first = policy.q_net.features_extractor.second["around"].weight
        target = policy.q_net_target.features_extractor.second["around"].weight
        assert first.data_ptr() != target.data_ptr()


def test_an_update_is_made_of_one_rollout():
    extractor = "roles.host.policy_arguments={extractor: flatten}"
    players = HostAgentTrainer(duel("roles.host.learning_rate=1.0e-2", extractor))
    learner = players.roles["host"]
    assert type(learner.policy.features_extractor) is FlattenExtractor
    assert learner.collect() == 4 * 3
    buffer = learner.model.rollout_buffer
    before = weights(learner)
    # The advantage of the last move is one TD error, lambda or not.
    last_values = learner.policy.predict_values(torch.as_tensor(learner.model._last_obs))
    running = 1.0 - learner.model._last_episode_starts
    later = 0.97 * last_values.detach().numpy().flatten() * running
    expected = buffer.rewards[-1] + later - buffer.values[-1]
    np.testing.assert_allclose(buffer.advantages[-1], expected, rtol=1e-5, atol=1e-6)
    learner.update()
    assert learner.updates == 2  # epochs, as SB3 counts
    assert not equal(before, weights(learner))
    assert not learner.policy.training
    with pytest.raises(TypeError, match="networks of PPO cannot be replaced"):
        players.replace_nets(host=torch.nn.Linear(15, 4))


def test_both_are_measured_copied_and_played(tmp_path):
    config = read_config(duel("evaluation.keep_best=true", "training.steps=2"))
    job = TwoPlayer(config, Run(tmp_path))
    go(job)
    players = job.trainer
    assert players.copy().evaluate_rho() == players.history[0].values
    sizes = {"max_num_points": 5, "max_value": 5, "games": 50, "seed": 3}
    live = resgym.rho(players.players["host"], "random", **sizes).rho
    for saved in ("best/host", "models/host.zip"):
        host = load_player(tmp_path / saved, "host")
        assert resgym.rho(host, "random", **sizes).rho == live
