"""One encoder for both roles."""

from __future__ import annotations

import pytest
import torch

from sb3_ext.config.sections import ConfigError
from sb3_ext.two_player import HostAgentTrainer
from tests.sb3_ext.two_player.helpers import tiny, trainer

SHARED = (
    "shared_encoder=true",
    *(f"roles.{role}.policy_arguments={{extractor: point_set}}" for role in ("host", "agent")),
)


def encoders(players):
    """Copies of the weights of both roles' extractors, by role and name."""
    return {
        role: {
            name: value.detach().clone()
            for name, value in learner.policy.q_net.features_extractor.named_parameters()
        }
        for role, learner in players.roles.items()
    }


def same(first, second):
    return {name for name in first.keys() & second.keys() if torch.equal(first[name], second[name])}


OWN = {"encoder.0.weight", "head.0.weight"}  # what the host's axes enter by


def test_both_roles_move_one_encoder_and_their_own_layers():
    players = trainer(*SHARED)
    start = encoders(players)
    names = start["host"].keys()
    assert same(start["host"], start["agent"]) == names - OWN
    players.train(1, players=["host"])
    after_host = encoders(players)
    moved = names - same(start["agent"], after_host["agent"])
    assert moved == names - OWN  # the agent sees differently without an update of its own
    players.train(1, players=["agent"])
    after_both = encoders(players)
    assert names - same(after_host["host"], after_both["host"]) == names - OWN
    assert same(after_both["host"], after_both["agent"]) == names - OWN
    for learner in players.roles.values():
        policy = learner.policy
        assert learner.updates == 1
        first = policy.q_net.features_extractor.second["around"].weight
        target = policy.q_net_target.features_extractor.second["around"].weight
        assert first.data_ptr() != target.data_ptr()


def test_extractors_without_equal_weights_are_told_in_one_line():
    with pytest.raises(ConfigError, match="shared_encoder: the features extractors") as error:
        HostAgentTrainer(tiny("shared_encoder=true"))
    assert "\n" not in str(error.value)
