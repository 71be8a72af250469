"""One encoder for both roles."""

import torch

from tests.sb3_ext.two_player.helpers import trainer

POINT_SETS = [
    f"roles.{role}.policy_arguments={{extractor: point_set}}" for role in ("host", "agent")
]


def encoder(players, role):
    """Copies of the weights of a role's extractor, by name."""
    extractor = players.roles[role].policy.q_net.features_extractor
    return {name: value.detach().clone() for name, value in extractor.named_parameters()}


def same(first, second):
    return {name for name in first.keys() & second.keys() if torch.equal(first[name], second[name])}


def test_both_roles_move_one_encoder_and_their_own_layers():
    players = trainer("shared_encoder=true", *POINT_SETS)
    before = encoder(players, "agent")
    shared = before.keys() - {"encoder.0.weight", "head.0.weight"}  # the host's axes enter there
    assert same(encoder(players, "host"), before) == shared
    for role in ("host", "agent"):
        players.train(1, players=[role])
        after = encoder(players, "agent")
        assert shared <= before.keys() - same(before, after)  # without an update of its own, too
        assert same(encoder(players, "host"), after) == shared
        before = after
        policy = players.roles[role].policy
        first = policy.q_net.features_extractor.second["around"].weight
        target = policy.q_net_target.features_extractor.second["around"].weight
        assert first.data_ptr() != target.data_ptr()
