"""Everything that a model is made of while it learns, as the parts of a checkpoint.

docs/checkpoints.md lists the parts and what is promised. SB3's own algorithms draw from the global
generators, which `sb3_ext.checkpoints.training_state` saves.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

from sb3_ext.adapter.observations import entries_of
from sb3_ext.adapter.sb3_private import forget_observation
from sb3_ext.checkpoints.format import CheckpointError, CheckpointWarning, errors_named
from sb3_ext.checkpoints.policy_description import describe_policy, describe_space
from sb3_ext.checkpoints.training_state import (
    load_optimizer_state,
    load_training_state,
    optimizer_state,
    training_state,
)
from sb3_ext.checkpoints.vec_env_state import load_vec_env_state, vec_env_state
from sb3_ext.replay.buffers import TensorReplayBuffer
from sb3_ext.runs.ranks import ranks_of


def model_state(model: BaseAlgorithm, prefix: str = "", *, buffer: bool = True) -> dict[str, Any]:
    """The state of a model between two blocks of updates, see the module.

    Tensors are the model's own: write them out before it goes on.

    Args:
        model: DDQN, or SB3's and sb3-contrib's DQN, QRDQN, PPO, A2C and MaskablePPO, set up with an
            environment.
        prefix: put before the name of every part, such as ``"host."``.
        buffer: False leaves out the experience, the bulk of the state.

    Raises:
        FloatingPointError: a loss or a weight is NaN or infinite, so that there is nothing to keep.
        TypeError: the model is of another kind, or its policy has a memory.
        ValueError: its replay buffer cannot be saved.
    """
    ours: Any = model
    parts: dict[str, Any] = {"model": _identity(model)}
    check_finite(model)
    tensors, counters = training_state(model)
    if (ranks := ranks_of(model)).size > 1:
        parts["model"]["ranks"] = ranks.size
    parts |= {
        "network": network_description(model.policy),
        "policy": model.policy.state_dict(),
        "optimizer": optimizer_state(model.policy.optimizer),
        "training": {"counters": counters, "tensors": tensors},
        "environment": None if model.env is None else vec_env_state(model.env),
    }
    if hasattr(model, "log_state"):
        parts["logs"] = ours.log_state()
    if hasattr(model, "collector_state") and ours.current_collector_state() is not None:
        parts["collector"] = ours.current_collector_state()
    if buffer:
        parts["buffer"] = _buffer_state(_buffer_of(model))
    return {prefix + part: value for part, value in parts.items()}


def check_finite(model: Any) -> None:
    """Raises a FloatingPointError if a loss or a weight of a model is NaN or infinite. Waits."""
    getattr(model, "check_finite", lambda: None)()
    for name, value in model.policy.state_dict().items():
        if value.is_floating_point() and not bool(value.isfinite().all()):
            raise FloatingPointError(
                f"policy/{name}: is NaN or infinite; go back to the last checkpoint and lower the"
                " learning rate or max_grad_norm"
            )


def restore_model(model: BaseAlgorithm, state: Mapping[str, Any], prefix: str = "") -> None:
    """Puts a state back into a model that was made from the same arguments.

    Continue with `learn(..., reset_num_timesteps=False)`. After an error the model is of no use.

    Raises:
        CheckpointError: a part is missing, or belongs to another algorithm, network, game or
            number of rows; names the field.
    """
    ours: Any = model
    with errors_named("parts"):
        saved = {
            name: state[prefix + name] for name in ("model", "policy", "optimizer", "training")
        }
    for name, own in _identity(model).items():
        if (other := saved["model"].get(name)) != own:
            raise CheckpointError(
                f"{prefix}model/{name}: the checkpoint has {other!r}, the model {own!r}"
            )
    load_policy_weights(model.policy, saved["policy"], f"{prefix}policy")
    with errors_named(f"{prefix}optimizer"):
        load_optimizer_state(model.policy.optimizer, saved["optimizer"])
    buffer, environment = state.get(f"{prefix}buffer"), state.get(f"{prefix}environment")
    if buffer is not None:
        with errors_named(f"{prefix}buffer"):
            _load_buffer_state(_buffer_of(model), buffer)
    if environment is not None and model.env is not None:
        with errors_named(f"{prefix}environment"):
            load_vec_env_state(model.env, environment)
    with errors_named(f"{prefix}training"):
        load_training_state(model, saved["training"]["tensors"], saved["training"]["counters"])
    if hasattr(model, "load_log_state") and f"{prefix}logs" in state:
        with errors_named(f"{prefix}logs"):
            ours.load_log_state(state[f"{prefix}logs"])
    if hasattr(model, "collector_state"):
        ours.collector_state = state.get(f"{prefix}collector")
    if environment is None:
        forget_observation(model)  # learn() resets the environment
    for name, lost in (("buffer", buffer is None), ("environment", environment is None)):
        if lost:
            text = f"{prefix}{name}: it was not saved; the run goes on otherwise than it would have"
            warnings.warn(text, CheckpointWarning, stacklevel=3)


def load_policy_weights(policy: Any, weights: Mapping[str, Any], field: str) -> None:
    """Loads weights into a policy; an error names ``field`` and what does not fit."""
    with errors_named(field):
        policy.load_state_dict(weights)


def network_description(policy: Any) -> dict[str, Any]:
    """How to build a policy, as ``policy``; or why that cannot be said, as ``not_described``."""
    try:
        return {"policy": describe_policy(policy)}
    except ValueError as error:
        return {"not_described": str(error)}


def _identity(model: Any) -> dict[str, Any]:
    """What has to be the same in a model that takes over a state."""
    known = isinstance(model, (OffPolicyAlgorithm, OnPolicyAlgorithm))
    if not known or hasattr(model, "_last_lstm_states"):
        raise TypeError(f"model: got {type(model).__name__}; expected an algorithm without memory")
    return {
        "algorithm": type(model).__name__,
        "n_envs": model.n_envs,
        "observation_space": describe_space(model.observation_space),
        "action_space": describe_space(model.action_space),
    }


def _buffer_of(model: Any) -> Any:
    return model.rollout_buffer if isinstance(model, OnPolicyAlgorithm) else model.replay_buffer


def _buffer_state(buffer: Any) -> dict[str, Any]:
    if isinstance(buffer, TensorReplayBuffer):
        buffer.check_finite()
        return buffer.state_dict()
    if isinstance(buffer, RolloutBuffer):  # and sb3-contrib's, which have masks
        return {
            name: value
            for name, value in vars(buffer).items()
            if name in ("full", "generator_ready", "pos")
            or all(isinstance(each, np.ndarray) for each in entries_of(value).values())
        }
    raise ValueError(
        f"replay_buffer_class: {type(buffer).__name__} cannot be saved in a checkpoint; expected a"
        " TensorReplayBuffer or a rollout buffer"
    )


def _load_buffer_state(buffer: Any, state: Mapping[str, Any]) -> None:
    if isinstance(buffer, TensorReplayBuffer):
        buffer.load_state_dict(state)
    else:
        vars(buffer).update({name: state[name] for name in _buffer_state(buffer)})
