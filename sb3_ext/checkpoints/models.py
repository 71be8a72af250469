"""Saved models: the whole state in training, and versions to play with.

docs/checkpoints.md lists the parts of a checkpoint and the guarantees. SB3's own algorithms use the
global generators; `global_random_state` saves them.

A version to play with is a checkpoint, SB3's file, or one ``.safetensors`` file, which has the
weights, and the description of the policy as metadata. The shipped players are such files, and so
is ``model.safetensors`` of a model card (docs/scoreboard.md). Reading one runs no code.
"""

from __future__ import annotations

import copy
import io
import json
import random
import warnings
from collections import deque
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.vec_env import VecNormalize
from torch import Tensor
from torch.optim import Optimizer

from resgym.files import opened, parse_json
from sb3_ext.adapter import TensorVecEnv
from sb3_ext.adapter.seam import COUNTERS, OBSERVATIONS, each_entry, entries_of, forget_observation
from sb3_ext.checkpoints.policy_description import build_policy, describe_policy, describe_space
from sb3_ext.replay.buffers import TensorReplayBuffer
from sb3_ext.runs.checkpoint import CheckpointError, checkpoint_errors, save_checkpoint
from sb3_ext.runs.files import CheckpointWarning, write_durably
from sb3_ext.types import Data, StateDict

MODEL = "model.safetensors"
"""A version to play with in a card's folder."""

MAX_WEIGHTS = 2**32
"""Bytes of a file of weights."""


def model_state(model: BaseAlgorithm, prefix: str = "") -> StateDict:
    """Return the state of a model between two blocks of updates.

    Tensors belong to the model: write them before it continues.

    Args:
        model: DDQN, or SB3's and sb3-contrib's DQN, QRDQN, PPO, A2C and MaskablePPO, set up with an
            environment.
        prefix: put before the name of every part, such as ``"host."``.

    Raises:
        FloatingPointError: a loss or a weight is NaN or infinite.
        TypeError: the model has another type, or its policy is recurrent.
        ValueError: its replay buffer cannot be saved.
    """
    check_finite(model)
    parts = {
        "model": _identity(model),
        "network": network_description(model.policy),
        "policy": model.policy.state_dict(),
        "optimizer": model.policy.optimizer.state_dict(),
        "training": training_state(model),
        "environment": vec_env_state(model.env),
        "buffer": _buffer_state(buffer_of(model)),
    }
    return {prefix + part: value for part, value in parts.items()}


def check_finite(model: Any) -> None:
    """Raise FloatingPointError if a loss or weight is NaN or infinite. Waits for the device."""
    getattr(model, "check_finite", lambda: None)()
    for name, value in model.policy.state_dict().items():
        if value.is_floating_point() and not value.isfinite().all():
            raise FloatingPointError(
                f"policy/{name}: is NaN or infinite; go back to the last checkpoint and lower the"
                " learning rate or max_grad_norm"
            )


def restore_model(model: BaseAlgorithm, state: StateDict, prefix: str = "") -> None:
    """Restore a state in a model made from the same arguments.

    Continue with `learn(..., reset_num_timesteps=False)`. After an error the model is unusable.

    Raises:
        CheckpointError: a part is missing, or belongs to another algorithm, network, game or
            number of rows; names the field.
    """
    with checkpoint_errors("parts"):
        saved = state[f"{prefix}model"]
    for name, own in _identity(model).items():
        if (other := saved.get(name)) != own:
            raise CheckpointError(
                f"{prefix}model/{name}: the checkpoint has {other!r}, the model {own!r}"
            )
    loads: dict[str, Any] = {
        "policy": model.policy.load_state_dict,
        "optimizer": partial(load_optimizer_state, model.policy.optimizer),
        "buffer": partial(_load_buffer, buffer_of(model)),
        "training": partial(load_training_state, model),
        "environment": partial(load_vec_env_state, model.env),
    }
    for name, load in loads.items():
        part = state.get(prefix + name)
        if part is not None:
            with checkpoint_errors(prefix + name):
                load(part)
        elif name == "environment":
            warnings.warn(
                f"{prefix}environment: it was not saved; the run continues otherwise than it would",
                CheckpointWarning,
                stacklevel=2,
            )
            forget_observation(model)  # learn() resets the environment
        else:
            raise CheckpointError(f"parts: {prefix}{name} is missing")


def network_description(policy: Any) -> Data:
    """Describe how to build a policy (``policy``), or why one cannot (``not_described``)."""
    try:
        return {"policy": describe_policy(policy)}
    except ValueError as error:
        return {"not_described": str(error)}


def _identity(model: Any) -> Data:
    """Return what a model must have in common with the one whose state it loads.

    Raises:
        TypeError: the model is of another kind than SB3's, or its policy has a memory.
    """
    known = isinstance(model, (OffPolicyAlgorithm, OnPolicyAlgorithm))
    if not known or hasattr(model, "_last_lstm_states"):
        raise TypeError(f"model: got {type(model).__name__}; expected an algorithm without memory")
    return {
        "algorithm": type(model).__name__,
        "n_envs": model.n_envs,
        "observation_space": describe_space(model.observation_space),
        "action_space": describe_space(model.action_space),
    }


def buffer_of(model: Any) -> Any:
    """What a model has collected."""
    return model.rollout_buffer if isinstance(model, OnPolicyAlgorithm) else model.replay_buffer


def _buffer_state(buffer: Any) -> StateDict:
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


def _load_buffer(buffer: Any, state: StateDict) -> None:
    if isinstance(buffer, TensorReplayBuffer):
        buffer.load_state_dict(state)
    else:
        vars(buffer).update({name: state[name] for name in _buffer_state(buffer)})


def _remembered(model: Any) -> list[str]:
    names = (*COUNTERS, *OBSERVATIONS, *getattr(model, "remembered", ()))
    return [name for name in names if hasattr(model, name)]


def training_state(model: Any) -> StateDict:
    """Counters, what the environment showed last, and the state of the model's own generators.

    SB3's algorithms draw random actions from their action space.
    """
    getattr(model, "read_episodes", lambda: None)()
    state = {name: getattr(model, name) for name in _remembered(model)}
    state |= getattr(model, "between_logs", dict)()
    state |= {name: [*each] for name, each in state.items() if isinstance(each, deque)}
    if hasattr(model, "random_streams"):
        streams = model.random_streams.items()
        return state | {"random": {name: stream.get_state() for name, stream in streams}}
    return state | {"random": model.action_space.np_random.bit_generator.state}


def load_training_state(model: Any, state: StateDict) -> None:
    """Restore `training_state`, into a model of the same arguments.

    The environment's state is restored separately. Continue with
    `learn(..., reset_num_timesteps=False)`.

    Raises:
        KeyError: something is missing.
    """

    def own(value: Any) -> Any:
        if isinstance(value, Tensor):
            return value.to(model.device, copy=True)
        return copy.copy(value)

    for name in _remembered(model):
        value = each_entry(own, state[name])
        window = isinstance(value, list) and name.endswith("_buffer")
        setattr(model, name, deque(value, model._stats_window_size) if window else value)
    if not hasattr(model, "random_streams"):
        model.action_space.np_random.bit_generator.state = state["random"]
        return
    for name, stream in model.random_streams.items():
        saved = state["random"][name]
        if saved.shape == stream.get_state().shape:  # on another device they begin anew
            stream.set_state(saved.cpu())


def load_optimizer_state(optimizer: Optimizer, state: StateDict) -> None:
    """Restore the state of an optimiser with the same parameters.

    Raises:
        Whatever the optimiser raises: it had other groups of parameters, settings or moments.
    """
    for group, own in zip(state["param_groups"], optimizer.param_groups, strict=False):
        if group.keys() != own.keys():
            raise ValueError(f"param_groups: got {sorted(group)}, need {sorted(own)}")
    needed = _shapes_after_a_step(optimizer)
    optimizer.load_state_dict(dict(state))
    for index, given in _shapes(optimizer).items():  # a fused step reads beyond what is too short
        if given and given != needed[index]:
            raise ValueError(f"state/{index}: got {given}, need {needed[index]}")
    _shapes_after_a_step(optimizer)


def _shapes(optimizer: Optimizer) -> dict[Any, Any]:
    states = optimizer.state_dict()["state"]
    return {key: {name: np.shape(each[name]) for name in each} for key, each in states.items()}


def _shapes_after_a_step(optimizer: Optimizer) -> dict[Any, Any]:
    trial = copy.deepcopy(optimizer)
    for parameter in (each for group in trial.param_groups for each in group["params"]):
        parameter.grad = torch.zeros_like(parameter)
    trial.step()
    return _shapes(trial)


def global_random_state() -> StateDict:
    """The generators of Python, NumPy and PyTorch (CUDA's too, if it is in use)."""
    return {
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else [],
        "numpy": np.random.get_state(),
        "python": random.getstate(),
        "torch": torch.get_rng_state(),
    }


def load_global_random_state(state: StateDict) -> None:
    """Restore a `global_random_state`; CUDA's only with the same number of devices."""
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])
    torch.set_rng_state(state["torch"].cpu())
    if state["cuda"] and len(state["cuda"]) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all([each.cpu() for each in state["cuda"]])


def _statistics(env: VecNormalize) -> list[Any]:
    return [env.ret_rms, *entries_of(getattr(env, "obs_rms", {})).values()]


def vec_env_state(env: Any) -> StateDict | None:
    """The state of an environment, in a `VecNormalize` or not; of others None.

    An environment has to offer `state_dict`; SB3's own, of single environments, do not.
    """
    if isinstance(env, VecNormalize):
        statistics = [[each.mean, each.var, each.count] for each in _statistics(env)]
        if (inner := vec_env_state(env.venv)) is None:
            return None
        return {"inner": inner, "returns": env.returns, "statistics": statistics}
    known = isinstance(env, TensorVecEnv) and env.has_attr("state_dict")
    return env.state_dict() if known else None


def load_vec_env_state(env: Any, state: StateDict) -> None:
    """Restore `vec_env_state`.

    Raises:
        ValueError, KeyError: there is another wrapper, or the environment says that it does not
            fit.
    """
    if isinstance(env, VecNormalize):
        for each, values in zip(_statistics(env), state["statistics"], strict=True):
            each.mean, each.var, each.count = values
        env.returns, env, state = state["returns"], env.venv, state["inner"]
    env.load_state_dict(state)


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
        _network(policy).load_state_dict(weights)
    return policy.to(device)


def save_model(path: Path, model: Any) -> None:
    """Write a model's SB3 file; the old file stays until the new one is complete.

    ``path`` ends in ``.zip``. A model with NaN weights is refused.
    """
    content = io.BytesIO()
    model.save(content)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_durably(path, content.getvalue())


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
    weights = dict(policy.state_dict())
    save_checkpoint(path, {"evaluation": evaluation, "network": network, "policy": weights})
