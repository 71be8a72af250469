"""Versions of a model that are kept to play with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sb3_ext.checkpoints.model_state import network_description
from sb3_ext.runs.checkpoint import save_checkpoint
from sb3_ext.runs.files import rename_durably


def save_model(path: Path, model: Any) -> None:
    """Writes SB3's file of a model; the old one stays until the new one is complete.

    ``path`` ends in ``.zip``. A model that a NaN has spoiled refuses to be saved.
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
    """Writes a version of a model as a checkpoint that needs no pickle.

    Args:
        path: the checkpoint's directory.
        model: its policy is what plays; without ``archive`` it may be the policy itself.
        evaluation: why it is kept, as plain data.
        archive: write SB3's file too, as ``<path>_model.zip`` for a path ``best`` and as
            ``<path>.zip`` for others.
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
