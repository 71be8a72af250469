"""The folder of a run: what was asked for, what was measured, what can be continued.

config.yml          the configuration with every key, after --set
run.json            command line, seed, versions of the packages, commit
resumed.jsonl       the same for every time that the run was resumed
metrics.jsonl       a line every logging.every_steps steps: losses, rates, times
evaluations.jsonl   a line for each measurement of the players
summary.json        the last measurement and the best scores
best/<role>/        the best version of a role to play with, if evaluation.keep_best
best/<role>.zip     the same as a file of SB3
models/<role>.zip   the last version
checkpoints/        complete states to resume from
tensorboard/        if logging.tensorboard
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from sb3_ext.callbacks.action_counts import entropy_of_counts
from sb3_ext.checkpoints.checkpoint import checkpoint_name, prune_checkpoints, save_checkpoint
from sb3_ext.checkpoints.durable_files import rename_durably, write_text_durably
from sb3_ext.checkpoints.model_state import network_description
from sb3_ext.checkpoints.provenance import provenance
from sb3_ext.config.sections import ConfigError
from sb3_ext.two_player.config import TrainerConfig
from sb3_ext.two_player.measures import Evaluation

__all__ = ["RunDirectory"]


class RunDirectory:
    """Writes the files of a run.

    Args:
        path: the folder, made if needed.
        config: what is run.
        command: the command line, for `run.json`.
        resumed_at: the step that the run goes on from; what was written about later ones is
            dropped, since they are made again. None: a folder that holds a run already is refused.

    Raises:
        ConfigError: the folder holds a run, or cannot be written to.
    """

    def __init__(
        self,
        path: str | Path,
        config: TrainerConfig,
        command: Sequence[str] = (),
        *,
        resumed_at: int | None = None,
    ) -> None:
        self.path, self.config = Path(path), config
        if (self.path / "config.yml").exists() and resumed_at is None:
            raise ConfigError(
                f"--out: {self.path} holds a run already; take another folder, or --resume "
                f"{self.path} to go on with it"
            )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            write_text_durably(
                self.path / "config.yml", yaml.safe_dump(config.to_dict(), sort_keys=False)
            )
            if resumed_at is None:
                self._write_json("run.json", provenance(config.seed, command))
            else:
                self._append(
                    "resumed.jsonl", {"step": resumed_at, **provenance(config.seed, command)}
                )
                for name in ("metrics.jsonl", "evaluations.jsonl"):
                    self._keep_until(name, resumed_at)
        except OSError as error:
            raise ConfigError(f"--out: {self.path} cannot be written to: {error}") from None
        self._tensorboard: Any = None
        if config.logging.tensorboard:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError:
                raise ConfigError(
                    "logging.tensorboard: true needs the package tensorboard, which is not "
                    "installed"
                ) from None
            self._tensorboard = SummaryWriter(str(self.path / "tensorboard"))

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints."""
        return self.path / "checkpoints"

    def add_metrics(self, step: int, metrics: Mapping[str, float]) -> None:
        """Append a line of metrics."""
        self._append("metrics.jsonl", {"step": step, **metrics})
        self._show(step, metrics)

    def add_evaluation(self, evaluation: Evaluation, measure: str) -> None:
        """Append a measurement."""
        self._append("evaluations.jsonl", evaluation.to_dict())
        shown = {f"{measure}/{pair}": value for pair, value in evaluation.values.items()}
        for role, counts in evaluation.actions.items():
            shown[f"{role}/action_entropy"] = entropy_of_counts(counts)
        self._show(evaluation.step, shown)

    def save_model(self, folder: str, role: str, model: Any) -> None:
        """Write SB3's file of a role; the old one stays until the new one is complete."""
        target = self.path / folder
        target.mkdir(parents=True, exist_ok=True)
        aside = target / f"{role}.new.zip"
        model.save(aside)
        rename_durably(aside, target / f"{role}.zip")

    def save_best(self, role: str, model: Any, evaluation: Evaluation) -> None:
        """Write the best version of a role as a checkpoint that needs no pickle, and for SB3."""
        state = {
            "evaluation": evaluation.to_dict(),
            "network": network_description(model.policy),
            "policy": dict(model.policy.state_dict()),
        }
        save_checkpoint(self.path / "best" / role, state, latest=False)
        self.save_model("best", role, model)

    def save_checkpoint(self, step: int, state: Mapping[str, Any]) -> Path:
        """Write a checkpoint and drop old ones."""
        path = save_checkpoint(self.checkpoints / checkpoint_name(step), state)
        if self.config.checkpoint is not None:
            prune_checkpoints(self.checkpoints, self.config.checkpoint.keep)
        return path

    def add_summary(self, summary: Mapping[str, Any]) -> None:
        """Write `summary.json`."""
        self._write_json("summary.json", summary)

    def close(self) -> None:
        """Finish what is open."""
        if self._tensorboard is not None:
            self._tensorboard.close()

    def _show(self, step: int, values: Mapping[str, float]) -> None:
        if self._tensorboard is not None:
            for name, value in values.items():
                self._tensorboard.add_scalar(name, value, step)
            self._tensorboard.flush()

    def _append(self, name: str, entry: Mapping[str, Any]) -> None:
        with (self.path / name).open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def _keep_until(self, name: str, step: int) -> None:
        """Drop the lines of later steps, and what a crash left of a last line."""
        file = self.path / name
        if not file.exists():
            return
        kept = []
        for line in file.read_text(encoding="utf-8").splitlines():
            with suppress(ValueError):
                if json.loads(line)["step"] <= step:
                    kept.append(line + "\n")
        write_text_durably(file, "".join(kept))

    def _write_json(self, name: str, data: Mapping[str, Any]) -> None:
        write_text_durably(self.path / name, json.dumps(data, indent=2) + "\n")
