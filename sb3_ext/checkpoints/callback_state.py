"""What callbacks remember, as one part of a checkpoint.

A callback takes part by having ``state_dict()``, which returns tensors and plain data, and
``load_state_dict(state)``. The class's name is the key; several of one class are numbered in the
order in which they stand in the list.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback, CallbackList

from sb3_ext.checkpoints.checkpoint import CheckpointError, CheckpointWarning

__all__ = ["callback_states", "load_callback_states", "walk_callbacks"]


def walk_callbacks(callback: Any) -> Iterator[BaseCallback]:
    """A callback, those in its list, and those inside of them, in order; None has none."""
    if isinstance(callback, (list, tuple)):
        for child in callback:
            yield from walk_callbacks(child)
    elif isinstance(callback, CallbackList):
        yield from walk_callbacks(callback.callbacks)
    elif isinstance(callback, BaseCallback):
        yield callback
        yield from walk_callbacks(getattr(callback, "callback", None))


def _with_state(callback: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in walk_callbacks(callback):
        if hasattr(each, "state_dict") and hasattr(each, "load_state_dict"):
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
    for name in sorted(present.keys() ^ states.keys()):
        text = f"the checkpoint has a state of {name}, which is not among the callbacks"
        if name in present:
            text = f"{name} is not in the checkpoint and begins anew"
        warnings.warn(f"callbacks: {text}", CheckpointWarning, stacklevel=2)
    for name in sorted(present.keys() & states.keys()):
        try:
            present[name].load_state_dict(states[name])
        except (KeyError, TypeError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise CheckpointError(f"callbacks/{name}: {reason}") from error
