"""Resume a run, or start a new one with the networks of another.

docs/checkpoints.md has an example. A callback's state is stored under the name of its class;
several of one class are numbered in order.
"""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path
from typing import Any

from stable_baselines3.common.base_class import BaseAlgorithm

from sb3_ext.adapter.seam import walk_callbacks
from sb3_ext.checkpoints.models import (
    global_random_state,
    load_global_random_state,
    model_state,
    restore_model,
)
from sb3_ext.runs.checkpoint import (
    checkpoint_errors,
    checkpoint_name,
    list_checkpoints,
    read_checkpoint,
    save_checkpoint,
)
from sb3_ext.runs.files import CheckpointWarning
from sb3_ext.types import StateDict, StrPath


def save_run(
    model: BaseAlgorithm,
    run_dir: StrPath,
    callbacks: Any = None,
    *,
    keep_last: int = 2,
) -> Path:
    """Write a checkpoint of a run and delete old ones; return its directory.

    Args:
        model: between two blocks of updates, as after `learn` or where `Checkpoints` saves.
        run_dir: the folder of the run; the checkpoint is named after the transitions collected, or
            after the newest checkpoint there if that has a greater number.
        callbacks: callbacks whose state is saved too.
        keep_last: number of checkpoints to keep.

    Raises:
        FloatingPointError: a loss was NaN or infinite; nothing is written.
        OSError: the checkpoint could not be written; earlier ones are intact.
    """
    number = getattr(model, "num_transitions", model.num_timesteps)
    for newest in list_checkpoints(run_dir)[:1]:  # a model that counts anew must not fall behind it
        last = int(newest.stem.removeprefix("checkpoint-"))
        number = number if number >= last else last + 1
    path = Path(run_dir) / checkpoint_name(number)
    return save_checkpoint(path, run_state(model, callbacks), keep_last=keep_last)


def run_state(model: BaseAlgorithm, callbacks: Any = None) -> StateDict:
    """Return the parts of a checkpoint: of the model, its callbacks and the process; see resume."""
    about = {"callbacks": callback_states(callbacks), "random": global_random_state()}
    return model_state(model) | about


def load_run_state(model: BaseAlgorithm, state: StateDict, callbacks: Any = None) -> None:
    """Restore `run_state` in a model made from the same arguments; errors as `resume`."""
    restore_model(model, state)
    if callbacks is not None:
        load_callback_states(callbacks, state.get("callbacks", {}))
    if "random" in state:
        load_global_random_state(state["random"])


def resume(model: BaseAlgorithm, run_dir: StrPath, callbacks: Any = None) -> Path:
    """Restore a run's newest valid checkpoint in a model made from the same arguments.

    Continue with `learn(remaining, callbacks, reset_num_timesteps=False)`.

    Args:
        model: a new model, with its environment.
        run_dir: the folder of the run, or one checkpoint.
        callbacks: the callbacks for `learn`, made as before; None: they start afresh.

    Returns:
        The checkpoint. Damaged newer ones are skipped with a `CheckpointWarning`.

    Raises:
        CheckpointError: there is no valid checkpoint, or it belongs to another model.
    """
    path, state = read_checkpoint(run_dir)
    with checkpoint_errors(str(path)):
        load_run_state(model, state, callbacks)
    return path


def init_from(model: BaseAlgorithm, path: StrPath, role: str | None = None) -> Path:
    """Take over only the networks of another run; return the checkpoint.

    Args:
        model: a new model with networks of the same shapes.
        path: a checkpoint, or the folder of a run.
        role: the role, for a checkpoint of two players.

    Raises:
        CheckpointError: there is no valid checkpoint, or its networks have other shapes.
    """
    part = "policy" if role is None else f"{role}.policy"
    path, state = read_checkpoint(path, [part])
    with checkpoint_errors(f"{path}: {part}"):
        model.policy.load_state_dict(state[part])
    return path


def _stateful_callbacks(callback: Any) -> dict[str, Any]:
    """Return the callbacks with a state by class; the second of a class is ``NAME#2``."""
    by_name: dict[str, Any] = {}
    counts = Counter[str]()
    for child in walk_callbacks(callback):
        if hasattr(child, "load_state_dict"):
            name = type(child).__name__
            counts[name] += 1
            by_name[name if counts[name] == 1 else f"{name}#{counts[name]}"] = child
    return by_name


def callback_states(callback: Any) -> StateDict:
    """Return the states of all callbacks that have one, by name."""
    return {name: each.state_dict() for name, each in _stateful_callbacks(callback).items()}


def load_callback_states(callback: Any, states: StateDict) -> None:
    """Restore `callback_states`; call this before `learn`.

    A callback without a saved state starts afresh, and the state of a missing callback is ignored,
    each with a `CheckpointWarning`.

    Raises:
        CheckpointError: a callback does not accept its state.
    """
    present = _stateful_callbacks(callback)
    for name in sorted(present.keys() | states.keys()):
        if name in present and name in states:
            with checkpoint_errors(f"callbacks/{name}"):
                present[name].load_state_dict(states[name])
            continue
        lacking = "the checkpoint has no state of it" if name in present else "there is none now"
        warnings.warn(f"callbacks: {name}: {lacking}", CheckpointWarning, stacklevel=2)
