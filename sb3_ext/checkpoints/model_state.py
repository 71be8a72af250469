"""The state of a model in training, as the parts of a checkpoint.

docs/checkpoints.md lists the parts and the guarantees. SB3's own algorithms use the global
generators; `global_random_state` saves them.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import (
    VecCheckNan,
    VecEnv,
    VecEnvWrapper,
    VecMonitor,
    VecNormalize,
    VecTransposeImage,
)
from torch.optim import Optimizer

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.adapter.observations import entries_of
from sb3_ext.adapter.sb3_private import (
    COUNTERS,
    STOCK_COUNTERS,
    forget_observation,
    last_observations,
    set_last_observations,
)
from sb3_ext.checkpoints.policy_description import describe_policy, describe_space
from sb3_ext.replay.buffers import TensorReplayBuffer
from sb3_ext.runs.checkpoint_format import CheckpointError, CheckpointWarning, errors_named
from sb3_ext.runs.ranks import ranks_of

# What each of SB3's wrappers remembers.
_REMEMBERED: dict[type[VecEnv], tuple[str, ...]] = {
    VecCheckNan: (),
    VecMonitor: ("episode_count", "episode_lengths", "episode_returns"),
    VecNormalize: ("obs_rms", "ret_rms", "returns"),
    VecTransposeImage: (),
}


def model_state(model: BaseAlgorithm, prefix: str = "", *, buffer: bool = True) -> dict[str, Any]:
    """Return the state of a model between two blocks of updates.

    Tensors belong to the model: write them before it continues.

    Args:
        model: DDQN, or SB3's and sb3-contrib's DQN, QRDQN, PPO, A2C and MaskablePPO, set up with an
            environment.
        prefix: put before the name of every part, such as ``"host."``.
        buffer: False leaves out the replay buffer, the largest part.

    Raises:
        FloatingPointError: a loss or a weight is NaN or infinite.
        TypeError: the model has another type, or its policy is recurrent.
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
        "optimizer": model.policy.optimizer.state_dict(),
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
    """Raise FloatingPointError if a loss or weight is NaN or infinite. Waits for the device."""
    getattr(model, "check_finite", lambda: None)()
    for name, value in model.policy.state_dict().items():
        if value.is_floating_point() and not bool(value.isfinite().all()):
            raise FloatingPointError(
                f"policy/{name}: is NaN or infinite; go back to the last checkpoint and lower the"
                " learning rate or max_grad_norm"
            )


def restore_model(model: BaseAlgorithm, state: Mapping[str, Any], prefix: str = "") -> None:
    """Restore a state in a model made from the same arguments.

    Continue with `learn(..., reset_num_timesteps=False)`. After an error the model is unusable.

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
        own = _buffer_of(model)
        with errors_named(f"{prefix}buffer"):
            if isinstance(own, TensorReplayBuffer):
                own.load_state_dict(buffer)
            else:
                vars(own).update({name: buffer[name] for name in _buffer_state(own)})
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
    """Load weights into a policy; errors name ``field`` and the mismatch."""
    with errors_named(field):
        policy.load_state_dict(weights)


def network_description(policy: Any) -> dict[str, Any]:
    """Describe how to build a policy (``policy``), or why one cannot (``not_described``)."""
    try:
        return {"policy": describe_policy(policy)}
    except ValueError as error:
        return {"not_described": str(error)}


def _identity(model: Any) -> dict[str, Any]:
    """Return what must be equal in a model that takes over a state."""
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


def _counters(model: Any) -> list[str]:
    own = getattr(model, "own_counters", None)
    names = STOCK_COUNTERS if own is None else (*COUNTERS, *own)
    return [name for name in names if hasattr(model, name)]


def training_state(model: BaseAlgorithm) -> tuple[dict[str, Any], dict[str, Any]]:
    """The state of our algorithms and of SB3's, which draw random actions from their action space.

    Returns:
        Named tensors (random streams, last observation and its legal actions), and plain data
        (counters).
    """
    tensors = last_observations(model)
    ours: Any = model
    counters = {name: getattr(model, name) for name in _counters(model)}
    if hasattr(model, "random_streams"):
        streams = ours.random_streams.items()
        tensors |= {f"random.{name}": stream.get_state() for name, stream in streams}
        if ours.last_legal is not None:
            tensors["last_legal"] = ours.last_legal
    else:
        counters["action_space"] = model.action_space.np_random.bit_generator.state
    return tensors, counters


def load_training_state(
    model: BaseAlgorithm, tensors: Mapping[str, Any], counters: Mapping[str, Any]
) -> None:
    """Restore a `training_state` in a model made from the same arguments.

    The environment's state is restored separately. Continue with
    `learn(..., reset_num_timesteps=False)`.

    Raises:
        KeyError: something is missing.
    """
    ours: Any = model
    set_last_observations(model, tensors)
    if hasattr(model, "random_streams"):
        for name, stream in ours.random_streams.items():
            state = tensors[f"random.{name}"]
            if state.shape == stream.get_state().shape:  # on another device they begin anew
                stream.set_state(state.cpu())
        legal = tensors.get("last_legal")
        ours.last_legal = None if legal is None else legal.to(model.device)
    else:
        model.action_space.np_random.bit_generator.state = counters["action_space"]
    for name in _counters(model):
        setattr(model, name, counters[name])


def load_optimizer_state(optimizer: Optimizer, state: Mapping[str, Any]) -> None:
    """Restore the state of an optimiser with the same parameters.

    Raises:
        ValueError, KeyError: it had other groups of parameters or settings.
    """
    for group, own in zip(state["param_groups"], optimizer.param_groups, strict=False):
        if group.keys() != own.keys():
            raise ValueError(f"param_groups: got {sorted(group)}, need {sorted(own)}")
    optimizer.load_state_dict(dict(state))


def global_random_state() -> dict[str, Any]:
    """The generators of Python, NumPy and PyTorch (CUDA's too, if it is in use)."""
    return {
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else [],
        "numpy": np.random.get_state(),
        "python": random.getstate(),
        "torch": torch.get_rng_state(),
    }


def load_global_random_state(state: Mapping[str, Any]) -> None:
    """Restore a `global_random_state`; CUDA's only with the same number of devices."""
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])
    torch.set_rng_state(state["torch"].cpu())
    if state["cuda"] and len(state["cuda"]) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all([each.cpu() for each in state["cuda"]])


def _layers(env: VecEnv) -> list[VecEnv]:
    """The environment and what it wraps, outermost first."""
    return [env, *_layers(env.venv)] if isinstance(env, VecEnvWrapper) else [env]


def _places(layer: VecEnv) -> list[tuple[dict[str, Any], str]]:
    """Where a wrapper keeps what it remembers: a dictionary and a key of it for each value."""
    found = []
    for name in _REMEMBERED[type(layer)]:
        value = vars(layer).get(name)  # not getattr: a wrapper hands on what it lacks itself
        statistics = [*value.values()] if isinstance(value, dict) else [value]
        if isinstance(statistics[0], RunningMeanStd):
            found += [(vars(each), key) for each in statistics for key in ("mean", "var", "count")]
        elif name in vars(layer):
            found.append((vars(layer), name))
    return found


def vec_env_state(env: VecEnv) -> list[Any] | None:
    """The state of every layer, outermost first, as tensors, arrays and plain data.

    Returns:
        None if that is impossible: the environment has no `state_dict` (SB3's own do not), or a
        wrapper is of an unknown type.
    """
    states: list[Any] = []
    for layer in _layers(env):
        if type(layer) in _REMEMBERED:
            states.append([owner[key] for owner, key in _places(layer)])
        elif isinstance(layer, TensorVecEnv) and layer.has_attr("state_dict"):
            states.append(layer.state_dict())
        else:
            return None
    return states


def load_vec_env_state(env: VecEnv, states: list[Any]) -> None:
    """Puts back what `vec_env_state` gave.

    Raises:
        ValueError, KeyError: the layers differ, or the environment refuses the state.
    """
    # Innermost first: it is the one that checks the most.
    for layer, state in zip(reversed(_layers(env)), reversed(states), strict=True):
        if isinstance(layer, TensorVecEnv):
            layer.load_state_dict(state)
        else:
            for (owner, key), value in zip(_places(layer), state, strict=True):
                owner[key] = value
