"""Checks of DDQN's arguments: one line that names the field, the value and what is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sb3_ext.config.checks import check_count, check_number
from sb3_ext.config.registry import unknown_word
from sb3_ext.ddqn.exploring import ROLLOUT_PRECISIONS
from sb3_ext.ddqn.update import LOSSES, compile_fault
from sb3_ext.off_policy.graphed import graph_fault
from sb3_ext.schedules.binding import parse_within
from sb3_ext.schedules.schedules import Schedule

_WORDS = {
    "target_update_unit": ("updates", "transitions"),
    "rollout_precision": ROLLOUT_PRECISIONS,
    "warmup": ("uniform_legal", "policy"),
}


def read_schedule(name: str, value: Any, highest: float = float("inf")) -> Any:
    """A schedule from any of its forms; a number, None or a callable as in SB3 stays as it is.

    Raises:
        ValueError, TypeError: No schedule, or one that leaves 0..highest.
    """
    if value is None or (callable(value) and not isinstance(value, Schedule)):
        return value
    if not isinstance(value, (str, Mapping, Schedule)):
        return check_number(name, value, low=0, high=highest)
    return parse_within(name, value, highest)


def check_arguments(model: Any) -> None:
    """Check the numbers and words that a DDQN was constructed with: ValueError or TypeError."""
    for name in ("buffer_size", "batch_size", "n_steps", "target_update_interval"):
        setattr(model, name, check_count(name, getattr(model, name)))
    model.learning_starts = check_count("learning_starts", model.learning_starts, low=0)
    check_number("tau", model.tau, low=0, high=1, above=True)
    rates = ("exploration_fraction", "exploration_initial_eps", "exploration_final_eps")
    for name in ("gamma", *rates):
        check_number(name, getattr(model, name), low=0, high=1)
    if model.max_grad_norm != float("inf"):
        check_number("max_grad_norm", model.max_grad_norm, low=0, above=True)
    check_count("gradient_steps", model.gradient_steps, low=-1)
    for name, choices in _WORDS.items():
        if getattr(model, name) not in choices:
            raise ValueError(unknown_word(name, getattr(model, name), choices))
    if isinstance(model.loss, str):
        LOSSES.resolve(model.loss)
    elif not callable(model.loss):
        raise TypeError(f"loss: got {model.loss!r}, need a function or {', '.join(LOSSES)}")
    check_count("evaluation_rows", model.evaluation_rows, low=0)
    for name in ("autocast", "cuda_graphs", "compile_networks"):
        if not isinstance(getattr(model, name), bool):
            raise TypeError(f"{name}: got {getattr(model, name)!r}, need True or False")
    if model.replay_ratio is not None:
        check_number("replay_ratio", model.replay_ratio, low=0, above=True)
        if model.gradient_steps != 1:
            raise ValueError(
                f"replay_ratio: got {model.replay_ratio} together with"
                f" gradient_steps={model.gradient_steps}; give only one of them"
            )
    if model.log_interval_seconds is not None:
        check_number("log_interval_seconds", model.log_interval_seconds, low=0)
    if model.log_interval_updates is not None:
        check_count("log_interval_updates", model.log_interval_updates)


def check_acceleration(model: Any) -> None:
    """ValueError if the machine and the optimiser of a new model cannot do what was asked for."""
    fault = graph_fault(model.device, model.policy.optimizer) if model.cuda_graphs else None
    if fault is not None:
        raise ValueError(f"cuda_graphs: got True, but {fault}")
    fault = compile_fault(model.device.type) if model.compile_networks else None
    if fault is not None:
        raise ValueError(f"compile_networks: got True, but {fault}")
