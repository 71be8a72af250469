"""The folder of a run; `docs/two_player.md` lists its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from stable_baselines3.common.logger import KVWriter, TensorBoardOutputFormat

from sb3_ext.callbacks.rho_evaluation import write_games
from sb3_ext.callbacks.watching import entropy_of_counts
from sb3_ext.checkpoints.checkpoint import checkpoint_name, prune_checkpoints, save_checkpoint
from sb3_ext.checkpoints.format import errors_named
from sb3_ext.config.sections import ConfigError
from sb3_ext.runs.best import save_player
from sb3_ext.runs.folder import FolderError, RunFolder, going_on_without
from sb3_ext.runs.provenance import provenance
from sb3_ext.two_player.config import TrainerConfig


@dataclass
class Evaluation:
    """One measurement of one version of the players.

    Attributes:
        step: steps of the trainer when it was made.
        versions: updates of each learning role at that time.
        values: the game's measure by pair, such as ``host-choose_first``.
        actions: how often each learning role took each action.
        scores: by learning role, the value that decides which version is best.
        improved: learning roles whose score was better than ever before.
        ratings: ratings of the roles, if there is a pool.
    """

    step: int
    versions: dict[str, int]
    values: dict[str, float]
    actions: dict[str, list[int]] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)
    improved: list[str] = field(default_factory=list)
    ratings: dict[str, float] = field(default_factory=dict)


class RunDirectory(RunFolder):
    """Writes the files of a run; until `close` nobody else does.

    What cannot be written while training goes on is left out with a `CheckpointWarning`, except
    checkpoints and models at the end.

    Args:
        path: the folder, made if needed.
        config: what is run.
        command: the command line, for `run.json`.
        resumed_at: the step that the run goes on from; what was written about later ones is
            dropped, since they are made again. None: a folder that holds a run already is refused.

    Raises:
        ConfigError: the folder holds a run, or tensorboard is not installed.
        FolderError: the folder cannot be written to, or another process writes to it.
    """

    def __init__(
        self,
        path: str | Path,
        config: TrainerConfig,
        command: Sequence[str] = (),
        *,
        resumed_at: int | None = None,
    ) -> None:
        super().__init__(path, "--out")
        self.config = config
        self.checkpoints = self.path / "checkpoints"
        self._tensorboard: KVWriter | None = None
        origin = provenance(config.seed, command)
        with ExitStack() as on_error:
            on_error.enter_context(self)
            if (self.path / "config.yml").exists() and resumed_at is None:
                raise ConfigError(
                    f"--out: {self.path} holds a run already; take another folder, or --resume "
                    f"{self.path} to go on with it"
                )
            if config.logging.tensorboard and find_spec("tensorboard") is None:
                raise ConfigError("logging.tensorboard: true needs the package tensorboard")
            with errors_named(f"--out: {self.path} cannot be written to", FolderError):
                self.write_yaml("config.yml", config.to_dict())
                if resumed_at is None:
                    self.write_json("run.json", origin)
                else:
                    self.append("resumed.jsonl", {"step": resumed_at, **origin})
                    for name in ("metrics.jsonl", "evaluations.jsonl"):
                        self.keep_lines_until(name, resumed_at)
                    if config.checkpoint is not None:  # a killed process may not have come to it
                        prune_checkpoints(self.checkpoints, config.checkpoint.keep)
                if config.logging.tensorboard:
                    self._tensorboard = TensorBoardOutputFormat(str(self.path / "tensorboard"))
            on_error.pop_all()

    def add_metrics(self, step: int, metrics: Mapping[str, float]) -> None:
        """Append a line of metrics."""
        self.append("metrics.jsonl", {"step": step, **metrics})
        self._show(step, metrics)

    def add_evaluation(self, evaluation: Evaluation, measure: str) -> None:
        """Append a measurement, in the place of what a killed process wrote of this step."""
        with going_on_without("line", self.path):
            self.keep_lines_until("evaluations.jsonl", evaluation.step - 1)
        self.append("evaluations.jsonl", asdict(evaluation))
        shown = {f"{measure}/{pair}": value for pair, value in evaluation.values.items()}
        for role, counts in evaluation.actions.items():
            shown[f"{role}/action_entropy"] = entropy_of_counts(counts)
        self._show(evaluation.step, shown)

    def add_games(self, step: int, records: Sequence[Any]) -> None:
        """Write down games of the players against each other as ``games/<step>``."""
        name = f"{step:09d}"
        with going_on_without("games", self.path / "games"):
            write_games(self.path / "games", name, f"after {step} steps", records)

    def save_best(self, role: str, model: Any, evaluation: Evaluation) -> None:
        """Write the best version of a role as a checkpoint that needs no pickle, and for SB3."""
        path = self.path / "best" / role
        with going_on_without("best version", path):
            save_player(path, model, asdict(evaluation))

    def save_checkpoint(self, step: int, state: Mapping[str, Any]) -> Path:
        """Write a checkpoint and drop old ones."""
        keep = getattr(self.config.checkpoint, "keep", None)
        return save_checkpoint(self.checkpoints / checkpoint_name(step), state, keep_last=keep)

    def close(self) -> None:
        """Finish what is open, and let others write; again is harmless."""
        if self._tensorboard is not None:
            self._tensorboard.close()
        self.__exit__(None)

    def _show(self, step: int, values: Mapping[str, float]) -> None:
        if self._tensorboard is not None:
            self._tensorboard.write(dict(values), dict.fromkeys(values, ()), step)
