"""Saved versions of a model for playing: checkpoints, SB3's files, and one ``.safetensors`` file.

The latter has the weights and the description of a policy as metadata. The shipped players are
such files, and so is ``model.safetensors`` of a model card
(docs/scoreboard.md). Reading one runs no code.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save
from stable_baselines3.common.policies import BasePolicy

from resgym.files import opened, parse_json
from sb3_ext.checkpoints.model_state import load_policy_weights, network_description
from sb3_ext.checkpoints.policy_description import build_policy, describe_policy
from sb3_ext.runs.checkpoint import checkpoint_errors, save_checkpoint
from sb3_ext.runs.files import CheckpointWarning, rename_durably

MODEL = "model.safetensors"
"""Such a file in a card's folder."""

MAX_WEIGHTS = 2**32
"""Bytes of a file of weights."""


def _network(policy: Any) -> Any:
    """What plays: of DQN's kind the online network alone."""
    return getattr(policy, "q_net", policy)


def policy_bytes(policy: Any, notes: Mapping[str, str], half: bool = False) -> bytes:
    """The content of a file; ``half`` rounds the weights to float16.

    Raises:
        ValueError: the policy cannot be described, see `describe_policy`.
    """
    kind = torch.float16 if half else torch.float32
    weights = {
        name: weight.detach().to("cpu", kind).contiguous()
        for name, weight in _network(policy).state_dict().items()
    }
    return save(weights, {**notes, "policy": json.dumps(describe_policy(policy))})


def read_policy(path: Path, device: torch.device | str = "cpu") -> BasePolicy:
    """The policy of a file, ready to play.

    Raises:
        CheckpointError: there is no such file, or it is damaged or of another kind.
    """
    damaged = checkpoint_errors(f"{path}: is missing or damaged")
    with damaged, opened(path, "model", MAX_WEIGHTS), safe_open(path, "pt") as file:
        description = parse_json((file.metadata() or {})["policy"])
        weights = {name: file.get_tensor(name).float() for name in file.keys()}  # noqa: SIM118
    with checkpoint_errors(str(path)):
        policy = build_policy(description)
    load_policy_weights(_network(policy), weights, f"{path}")
    policy.set_training_mode(False)
    return policy.to(device)


def save_model(path: Path, model: Any) -> None:
    """Write a model's SB3 file; the old file stays until the new one is complete.

    ``path`` ends in ``.zip``. A model with NaN weights is refused.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(".new.zip")
    try:
        model.save(aside)
        rename_durably(aside, path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def save_player(path: Path, model: Any, evaluation: Any, *, archive: bool = True) -> None:
    """Write a version of a model as a checkpoint without pickles.

    Args:
        path: the checkpoint's directory.
        model: the model whose policy plays; without ``archive`` it may be the policy itself.
        evaluation: the measurements of this version, as plain data.
        archive: also write SB3's file, as ``<path>_model.zip`` for a path ``best``, otherwise as
            ``<path>.zip``.
    """
    if archive:  # first, since it refuses a model that a NaN has spoiled
        name = "best_model.zip" if path.name == "best" else f"{path.name}.zip"
        save_model(path.with_name(name), model)
    policy = getattr(model, "policy", model)
    network = network_description(policy)
    if reason := network.get("not_described"):
        warnings.warn(f"{path}: cannot play later: {reason}", CheckpointWarning, stacklevel=2)
    state = {
        "evaluation": evaluation,
        "network": network,
        "policy": dict(policy.state_dict()),
    }
    save_checkpoint(path, state)
