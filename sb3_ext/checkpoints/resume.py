"""Going on with a run, and starting a new one from the networks of another.

docs/checkpoints.md has an example. The key of a callback's state is the name of its class; several
of one class are numbered in order.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stable_baselines3.common.base_class import BaseAlgorithm

from sb3_ext.adapter.sb3_private import walk_callbacks
from sb3_ext.checkpoints.model_state import (
    global_random_state,
    load_global_random_state,
    load_policy_weights,
    model_state,
    restore_model,
)
from sb3_ext.runs.checkpoint import checkpoint_name, read_checkpoint, save_checkpoint
from sb3_ext.runs.checkpoint_format import CheckpointError, CheckpointWarning, errors_named
from sb3_ext.runs.ranks import ranks_of


def save_run(
    model: BaseAlgorithm,
    run_dir: str | os.PathLike[str],
    callbacks: Any = None,
    *,
    keep_last: int = 2,
    buffer: bool = True,
) -> Path:
    """Writes a checkpoint of a run and removes old ones; returns its directory.

    Args:
        model: between two blocks of updates, as after `learn` or where `Checkpoints` saves.
        run_dir: the folder of the run; the checkpoint is named after the transitions collected.
        callbacks: those whose memory is saved with it.
        keep_last: how many checkpoints stay.
        buffer: False leaves out the experience. Going on is then not exact: it is collected anew.

    Raises:
        FloatingPointError: a loss was NaN or infinite, or the weights of several ranks are no
            longer the same; nothing is written.
        OSError: it could not be written; the earlier ones are as they were.
    """
    ranks = ranks_of(model)
    with ranks.together():
        state = model_state(model, buffer=buffer)
        state["callbacks"] = callback_states(callbacks)
        state["random"] = global_random_state()
    ranks.check_same(model.policy.parameters())
    path = Path(run_dir) / checkpoint_name(model.num_timesteps)
    return save_checkpoint(path, state, keep_last=keep_last, ranks=ranks)


def resume(model: BaseAlgorithm, run_dir: str | os.PathLike[str], callbacks: Any = None) -> Path:
    """Puts a run's newest valid checkpoint into a model of the same arguments.

    Continue with `learn(remaining, callbacks, reset_num_timesteps=False)`.

    Args:
        model: a new model, with its environment.
        run_dir: the folder of the run, or one checkpoint.
        callbacks: those that `learn` will be given, made as before; None begins with new ones.

    Returns:
        The checkpoint taken. Damaged newer ones are passed over with a `CheckpointWarning`.

    Raises:
        CheckpointError: there is no valid checkpoint, or it belongs to another model.
    """
    ranks = ranks_of(model)
    # First by all ranks alike, before one misses its part.
    path, state = read_checkpoint(run_dir, lambda names: {"model"} & {*names})
    wrote = state.get("model", {}).get("ranks", 1)
    if wrote != ranks.size:
        raise CheckpointError(
            f"{path}: was written by {wrote} ranks, here are {ranks.size}: go on with torchrun"
            f" --nproc-per-node {wrote}, or take its networks alone with --init-from"
        )
    path, state = read_checkpoint(run_dir, ranks=ranks)
    with errors_named(str(path)):
        restore_model(model, state)
        if callbacks is not None:
            load_callback_states(callbacks, state.get("callbacks", {}))
        if "random" in state:
            load_global_random_state(state["random"])
    return path


def init_from(model: BaseAlgorithm, path: str | os.PathLike[str], role: str | None = None) -> Path:
    """Takes over the networks of another run and nothing else; returns the checkpoint taken.

    Args:
        model: a new model with networks of the same shapes.
        path: a checkpoint, or the folder of a run.
        role: which one, for a checkpoint of two players.

    Raises:
        CheckpointError: there is no valid checkpoint, or its networks have other shapes.
    """
    part = "policy" if role is None else f"{role}.policy"
    path, state = read_checkpoint(path, [part])
    load_policy_weights(model.policy, state[part], f"{path}: {part}")
    return path


def _with_state(callback: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in walk_callbacks(callback):
        if hasattr(each, "load_state_dict"):
            kind = type(each).__name__
            number = sum(type(other).__name__ == kind for other in found.values())
            found[f"{kind}#{number + 1}" if number else kind] = each
    return found


def callback_states(callback: Any) -> dict[str, Any]:
    """The states of all callbacks that have one, by name."""
    return {name: each.state_dict() for name, each in _with_state(callback).items()}


def load_callback_states(callback: Any, states: Mapping[str, Any]) -> None:
    """Puts back what `callback_states` gave; call it before `learn`.

    A callback that the checkpoint does not know begins anew, and one that is not there any more is
    left out, each with a `CheckpointWarning`.

    Raises:
        CheckpointError: a callback does not accept its state.
    """
    present = _with_state(callback)
    for name in sorted(present.keys() | states.keys()):
        if name in present and name in states:
            with errors_named(f"callbacks/{name}"):
                present[name].load_state_dict(states[name])
            continue
        lacking = "the checkpoint has no state of it" if name in present else "there is none now"
        warnings.warn(f"callbacks: {name}: {lacking}", CheckpointWarning, stacklevel=2)
