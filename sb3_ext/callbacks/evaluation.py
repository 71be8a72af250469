"""SB3's evaluation callback, safe against kills, time limits and full disks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.vec_env import VecEnv

from sb3_ext.checkpoints.best import save_model
from sb3_ext.checkpoints.model_state import load_vec_env_state, vec_env_state
from sb3_ext.runs.files import rename_durably
from sb3_ext.runs.folder import going_on_without

_REMEMBERED = (
    *(f"evaluations_{name}" for name in ("timesteps", "results", "length", "successes")),
    *("best_mean_reward", "last_mean_reward"),
)


class Evaluation(EvalCallback):
    """Play episodes periodically; write ``evaluations.npz`` and ``best_model.zip``.

    As `EvalCallback`, but a resumed run continues with its measurements, best value and episodes,
    and files are replaced as a whole.

    Args:
        eval_env: the environment; its state is saved if it has one.
        folder: for the files.
        **arguments: of `EvalCallback`, without its paths.
    """

    def __init__(self, eval_env: VecEnv, folder: Path, **arguments: Any) -> None:
        self.folder = folder
        super().__init__(eval_env, log_path=str(folder), **arguments)
        self.log_path = str(folder / "evaluations.new")

    def _on_step(self) -> bool:
        before, goes_on = self.best_mean_reward, True
        with going_on_without("evaluation", self.folder):
            goes_on = super()._on_step()
            written = self.folder / "evaluations.new.npz"
            if written.exists():
                rename_durably(written, self.folder / "evaluations.npz")
        if self.best_mean_reward > before:
            kept, self.best_mean_reward = self.best_mean_reward, before
            with going_on_without("best model", self.folder):
                save_model(self.folder / "best_model.zip", self.model)
                self.best_mean_reward = kept
        return goes_on

    def state_dict(self) -> dict[str, Any]:
        """Return the measurements so far, and the state of the environment."""
        values = {name: getattr(self, name) for name in _REMEMBERED}
        played = bool(self.evaluations_timesteps)
        return {"environment": vec_env_state(self.eval_env) if played else None, **values}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved `state_dict`."""
        for name in _REMEMBERED:
            setattr(self, name, state[name])
        if state["environment"] is not None:
            load_vec_env_state(self.eval_env, state["environment"])
