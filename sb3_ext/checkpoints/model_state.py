"""Everything that a model is made of while it learns, as the parts of a checkpoint.

docs/checkpoints.md lists the parts and what is promised. SB3's own algorithms draw from the global
generators, which `sb3_ext.checkpoints.training_state` saves.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from torch import Tensor

from sb3_ext.adapter.observations import entries_of
from sb3_ext.adapter.sb3_private import forget_observation
from sb3_ext.checkpoints.format import CheckpointError, CheckpointWarning, errors_named
from sb3_ext.checkpoints.policy_description import build_space, describe_policy, describe_space
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
    _check_algorithm(model)
    check_finite(model)
    ours: Any = model
    tensors, counters = training_state(model)
    ranks = ranks_of(model)
    parts: dict[str, Any] = {
        "model": _identity(model) | ({} if ranks.size == 1 else {"ranks": ranks.size}),
        "network": network_description(model.policy),
        "policy": dict(model.policy.state_dict()),
        "optimizer": optimizer_state(model.policy.optimizer),
        "training": {"counters": counters, "tensors": tensors},
        "environment": None if model.env is None else vec_env_state(model.env),
    }
    if hasattr(model, "log_state"):
        parts["logs"] = ours.log_state()
    if hasattr(model, "collector_state"):
        collector = ours.current_collector_state()
        parts |= {} if collector is None else {"collector": collector}
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
    _check_algorithm(model)
    parts = {
        name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)
    }
    for name in ("model", "policy", "optimizer", "training"):
        if name not in parts:
            raise CheckpointError(f"parts: {prefix + name!r} is missing, there are {sorted(state)}")
    for name, value in _identity(model).items():
        if (saved := parts["model"].get(name)) != value:
            raise CheckpointError(
                f"{prefix}model/{name}: the checkpoint has {_shown(saved)}, the model"
                f" {_shown(value)}"
            )
    load_policy_weights(model.policy, parts["policy"], f"{prefix}policy")
    with errors_named(f"{prefix}optimizer"):
        load_optimizer_state(model.policy.optimizer, parts["optimizer"])
    if "buffer" in parts:
        with errors_named(f"{prefix}buffer"):
            _load_buffer_state(_buffer_of(model), parts["buffer"])
    else:
        _warn(f"{prefix}buffer: it was not saved; experience is collected anew")
    environment = parts.get("environment")
    if environment is not None and model.env is not None:
        with errors_named(f"{prefix}environment"):
            load_vec_env_state(model.env, environment)
    with errors_named(f"{prefix}training"):
        load_training_state(model, parts["training"]["tensors"], parts["training"]["counters"])
    if hasattr(model, "load_log_state") and "logs" in parts:
        with errors_named(f"{prefix}logs"):
            model.load_log_state(parts["logs"])
    if hasattr(model, "collector_state"):
        model.collector_state = parts.get("collector")
    if environment is None:
        forget_observation(model)  # learn() resets the environment
        _warn(f"{prefix}environment: its state was not saved; new episodes begin")


def _warn(text: str) -> None:
    text += ", and the run differs from one that was not interrupted"
    warnings.warn(text, CheckpointWarning, stacklevel=4)


def load_policy_weights(policy: Any, weights: Mapping[str, Any], field: str) -> None:
    """Loads weights into a policy after their names and shapes were compared; names ``field``."""
    own = policy.state_dict()
    for name in own:
        if name not in weights:
            raise CheckpointError(f"{field}/{name}: is missing")
    for name, value in weights.items():
        if name not in own:
            raise CheckpointError(f"{field}/{name}: the model has no such weight")
        if not isinstance(value, Tensor) or value.shape != own[name].shape:
            got = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise CheckpointError(f"{field}/{name}: got {got}, need {tuple(own[name].shape)}")
    policy.load_state_dict(weights)


def network_description(policy: Any) -> dict[str, Any]:
    """How to build a policy, as ``policy``; or why that cannot be said, as ``not_described``."""
    try:
        return {"policy": describe_policy(policy)}
    except ValueError as error:
        return {"not_described": str(error)}


def _check_algorithm(model: Any) -> None:
    known = isinstance(model, (OffPolicyAlgorithm, OnPolicyAlgorithm))
    if not known or hasattr(model, "_last_lstm_states"):
        raise TypeError(
            "model must be an off-policy algorithm, or an on-policy one without memory, got "
            f"{type(model).__name__}"
        )


def _identity(model: BaseAlgorithm) -> dict[str, Any]:
    """What has to be the same in a model that takes over a state."""
    return {
        "algorithm": type(model).__name__,
        "n_envs": model.n_envs,
        "observation_space": describe_space(model.observation_space),
        "action_space": describe_space(model.action_space),
    }


def _shown(value: Any) -> str:
    """A description of a space as Gymnasium writes the space."""
    return str(build_space(value)) if isinstance(value, dict) else repr(value)


# Of SB3's rollout buffers and of sb3-contrib's, which has masks.
_ROLLOUT_ARRAYS = (
    *("action_masks", "actions", "advantages", "episode_starts", "log_probs", "observations"),
    *("returns", "rewards", "values"),
)
_ROLLOUT_COUNTERS = ("full", "generator_ready", "pos")


def _buffer_of(model: Any) -> Any:
    return model.rollout_buffer if isinstance(model, OnPolicyAlgorithm) else model.replay_buffer


def _buffer_state(buffer: Any) -> dict[str, Any]:
    if isinstance(buffer, RolloutBuffer):
        tensors = {
            f"{name}.{key}": torch.from_numpy(entry)
            for name in _ROLLOUT_ARRAYS
            for key, entry in entries_of(getattr(buffer, name, None)).items()
            if entry is not None
        }
        counters = {name: getattr(buffer, name) for name in _ROLLOUT_COUNTERS}
    elif isinstance(buffer, TensorReplayBuffer):
        buffer.check_finite()
        return buffer.state_dict()
    else:
        raise ValueError(
            f"replay_buffer_class: {type(buffer).__name__} cannot be saved in a checkpoint, only"
            " TensorReplayBuffer and rollout buffers can"
        )
    return {"counters": counters, "tensors": tensors}


def _load_buffer_state(buffer: Any, state: Mapping[str, Any]) -> None:
    if isinstance(buffer, TensorReplayBuffer):
        return buffer.load_state_dict(state)
    if not isinstance(buffer, RolloutBuffer):
        raise ValueError(f"need a TensorReplayBuffer, the model has {type(buffer).__name__}")
    buffer.reset()
    for name, value in state["tensors"].items():
        attribute, _, key = name.partition(".")
        array = value.cpu().numpy().copy()
        if key:
            buffer.observations[key] = array  # type: ignore[call-overload]
        else:
            setattr(buffer, attribute, array)
    for name in _ROLLOUT_COUNTERS:
        setattr(buffer, name, state["counters"][name])
