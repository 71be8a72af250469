"""One encoder for both roles: what one learns of positions the other one sees with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from sb3_ext.two_player.learner import Learner

_NETWORKS = ("q_net", "quantile_net")
"""Names of networks with an extractor of their own; other policies have one themselves."""


def share_encoder(learners: Mapping[str, Learner]) -> list[str]:
    """Lets the features extractors of two roles use the same memory wherever they can.

    Weights of one name and one shape are one from now on, with the first role's values; what only
    one role is told (the agent the host's axes) enters through weights of its own. Every role's
    optimiser goes on moving all of its network. Target networks stay apart, and begin as copies.

    Returns:
        The names of the weights that are shared.

    Raises:
        ValueError: there are none.
    """
    policies = [learner.policy for learner in learners.values()]
    first, second = (dict(_encoder(policy).named_parameters()) for policy in policies)
    shared = [name for name in second if name in first and first[name].shape == second[name].shape]
    if not shared:
        raise ValueError("the features extractors of the roles have no weights of one shape")
    for name in shared:
        second[name].data = first[name].data
    for policy in policies:
        for name in _NETWORKS:
            if hasattr(policy, f"{name}_target"):
                online, target = getattr(policy, name), getattr(policy, f"{name}_target")
                target.load_state_dict(online.state_dict())
    return shared


def _encoder(policy: Any) -> nn.Module:
    owner = next((getattr(policy, name) for name in _NETWORKS if hasattr(policy, name)), policy)
    return owner.features_extractor  # type: ignore[no-any-return]
