"""Another algorithm, another optimiser, another buffer, by name."""

import pytest
import torch

from sb3_ext.replay.buffers import TensorReplayBuffer
from sb3_ext.replay.prioritized import PrioritizedReplayBuffer
from sb3_ext.two_player import HostAgentTrainer
from tests.sb3_ext.two_player.helpers import tiny, trainer


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
    ("name", "policies", "network"),
    [
        ("ddqn", ("HostPolicy", "AgentPolicy"), "q_net"),
        ("dqn", ("MlpPolicy", "MultiInputPolicy"), "q_net"),
        ("qrdqn", ("MlpPolicy", "MultiInputPolicy"), "quantile_net"),
    ],
)
def test_targets_follow_by_tau_before_the_fit_in_both_roles(name, policies, network):
    settings = ["game.invalid_action=noop"]
    for role, policy in zip(("host", "agent"), policies, strict=True):
        settings += [
            f"roles.{role}.algorithm={name}",
            f"roles.{role}.policy={policy}",
            f"roles.{role}.policy_arguments={{}}",
            f"roles.{role}.algorithm_arguments={{}}",
            f"roles.{role}.target_update={{every_updates: 3, tau: 0.25}}",
            f"roles.{role}.learning_rate={{schedule: linear, init: 0.01, final: 0.0, steps: 10}}",
        ]
    players = HostAgentTrainer(tiny(*settings))
    policy = players.roles["host"].policy
    target = [each.detach().clone() for each in getattr(policy, f"{network}_target").parameters()]
    online = None

    def note(each):
        nonlocal online
        if each.total_steps == 3:
            online = [p.detach().clone() for p in getattr(policy, network).parameters()]

    players.train(4, callback=note)
    # The algorithm's own target updates are off; the trainer's came before updates 0 and 3.
    for now, old, new in zip(
        getattr(policy, f"{network}_target").parameters(), target, online, strict=True
    ):
        torch.testing.assert_close(now, 0.75 * old + 0.25 * new)
    assert policy.optimizer.param_groups[0]["lr"] == pytest.approx(0.007)
    assert players.log_metrics()["host/loss"] >= 0
    assert not policy.training
