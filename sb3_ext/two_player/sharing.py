"""One encoder for both roles: what one learns of positions the other one sees with."""

from __future__ import annotations

from collections.abc import Mapping

from sb3_ext.two_player.learner import Learner
from sb3_ext.two_player.off_policy import target_pairs


def share_encoder(learners: Mapping[str, Learner]) -> None:
    """Lets the features extractors of two roles use the same memory wherever they can.

    Weights of one name and one shape are one from now on, with the first role's values; what only
    one role is told (the agent the host's axes) enters through weights of its own. Every role's
    optimiser continues moving all of its network. Target networks stay apart, and begin as copies.

    Raises:
        ValueError: no weights have the same name and shape.
    """
    pairs = [target_pairs(learner.policy) for learner in learners.values()]
    # A network with a target has an extractor of its own; other policies have one themselves.
    owners = [
        each[0][0] if each else learner.policy
        for each, learner in zip(pairs, learners.values(), strict=True)
    ]
    first, second = (dict(owner.features_extractor.named_parameters()) for owner in owners)
    shared = [name for name in second if name in first and first[name].shape == second[name].shape]
    if not shared:
        raise ValueError("the features extractors of the roles have no weights of one shape")
    for name in shared:
        second[name].data = first[name].data
    for online, target in (pair for each in pairs for pair in each):
        target.load_state_dict(online.state_dict())
