"""Another algorithm, another optimiser, another buffer, by name."""

from __future__ import annotations

import pytest
import torch

from sb3_ext.ddqn import DDQN
from sb3_ext.replay.buffers import TensorReplayBuffer
from sb3_ext.two_player import ALGORITHMS, BUFFERS, OPTIMIZERS, HostAgentTrainer
from tests.sb3_ext.ddqn.helpers import same, weights
from tests.sb3_ext.two_player.helpers import tiny


class CautiousDDQN(DDQN):
    """Aims at half of the target."""

    seen = 0

    def compute_target(self, batch):
        CautiousDDQN.seen += 1
        return 0.5 * super().compute_target(batch)


class CountingBuffer(TensorReplayBuffer):
    drawn = 0

    def sample(self, *arguments, **named):
        CountingBuffer.drawn += 1
        return super().sample(*arguments, **named)


class NoStep(torch.optim.SGD):
    """Does not move anything."""

    def step(self, closure=None):
        return None


def test_a_registered_algorithm_buffer_and_optimiser_are_used(monkeypatch):
    monkeypatch.setitem(ALGORITHMS, "cautious", CautiousDDQN)
    monkeypatch.setitem(BUFFERS, "counting", CountingBuffer)
    monkeypatch.setitem(OPTIMIZERS, "nostep", NoStep)
    players = HostAgentTrainer(
        tiny(
            "roles.host.algorithm=cautious",
            "roles.agent.replay_buffer.name=counting",
            "roles.agent.optimizer.name=nostep",
        )
    )
    host, agent = players.roles.values()
    before = weights(host), weights(agent)
    players.train(3)
    assert (CautiousDDQN.seen, CountingBuffer.drawn) == (3, 3)
    assert type(host.model) is CautiousDDQN
    assert not same(before[0], weights(host))
    assert same(before[1], weights(agent))  # the target is a copy of what has not moved


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
