"""The running means of SB3's `VecNormalize` as plain numbers, beside rl_zoo3's pickle of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecNormalize

from resgym.trust import regular_file
from sb3_ext.runs.checkpoint_format import errors_named
from sb3_ext.runs.files import write_text_durably

FILE = "vecnormalize.json"


def _means(env: VecNormalize) -> dict[str, Any]:
    own = env.obs_rms if env.norm_obs else {}
    entries = own if isinstance(own, dict) else {"": own}
    return {"return": env.ret_rms, **{f"observation.{key}": each for key, each in entries.items()}}


def save_statistics(env: Any, folder: Path) -> None:
    """Writes them into a folder."""
    found = {
        name: [np.asarray(value).tolist() for value in (each.mean, each.var, each.count)]
        for name, each in _means(env).items()
    }
    write_text_durably(folder / FILE, json.dumps(found))


def load_statistics(env: VecNormalize, folder: Path) -> None:
    """Puts back what `save_statistics` wrote.

    Raises:
        ValueError: the file is missing, damaged, or of other observations.
    """
    file = folder / FILE
    with errors_named(str(file), ValueError):
        found = json.loads(regular_file(file, "statistics").read_text(encoding="utf-8"))
        for name, each in _means(env).items():
            mean, var, each.count = found[name]
            if np.shape(mean) != np.shape(each.mean):
                raise ValueError("is of other observations")
            each.mean, each.var = np.array(mean), np.array(var)
