"""Saved versions of a model, for playing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sb3_ext.checkpoints.model_state import network_description
from sb3_ext.runs.checkpoint import save_checkpoint
from sb3_ext.runs.files import rename_durably


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
    state = {
        "evaluation": evaluation,
        "network": network_description(policy),
        "policy": dict(policy.state_dict()),
    }
    save_checkpoint(path, state, latest=False)
