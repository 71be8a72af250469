"""How a callback ends training."""

from __future__ import annotations

from typing import Any

__all__ = ["stop_training"]


def stop_training(model: Any) -> bool:
    """Asks a model to end the running `learn`.

    Our algorithms make the updates for what was collected first, so that a checkpoint written at
    the end continues exactly. Those of SB3 know only the end in the middle of a rollout.

    Args:
        model: the model that learns.

    Returns:
        What the callback has to return from `_on_step`.
    """
    if hasattr(model, "request_stop"):
        model.request_stop()
        return True
    model.stop_requested = True  # for who drives it without `learn`
    return False
