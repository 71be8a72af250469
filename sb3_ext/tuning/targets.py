"""What is tuned: each command's own training, with its own measure while it goes on."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

import gymnasium
import yaml
from annotated_types import Len
from filelock import FileLock

from resgym.measure.rho import rho
from resgym.players import resolve_player
from sb3_ext.attack.config import AttackConfig
from sb3_ext.attack.responder import seated, trained
from sb3_ext.callbacks.rho_evaluation import RhoEvaluation, player_of, seat_of
from sb3_ext.config.arguments import REFUSALS
from sb3_ext.config.checks import one_line, shown
from sb3_ext.config.reading import find_config, read_mapping
from sb3_ext.config.registry import Registry, unknown_word
from sb3_ext.config.sections import (
    ConfigError,
    Count,
    PositiveCount,
    Section,
    Size,
    checked,
    errors_of,
    read_section,
)
from sb3_ext.runs.driver import Used
from sb3_ext.studies.teach.generate import prepared
from sb3_ext.studies.teach.pretraining import Pretraining
from sb3_ext.studies.teach.settings import TaughtConfig
from sb3_ext.studies.teach.train import ENVIRONMENTS, build_model, read_hyperparameters
from sb3_ext.training.config_files import check_hyperparameters, read_sections
from sb3_ext.training.search_spaces import known_algorithms
from sb3_ext.training.train import train
from sb3_ext.two_player.config import TrainerConfig
from sb3_ext.two_player.trainer import HostAgentTrainer

Report = Callable[[int, float], None]
"""Called with updates (or steps) and what was measured after them; raises to end the training."""

TARGETS: Registry[type[Target]] = Registry("command")


class Target(Section):
    """A command and the configuration that is changed; the rest of the keys say what is measured.

    Attributes:
        command: its name.
        config: a file, or the name of one of this package, as for the command itself.
    """

    command: str
    config: str

    @abstractmethod
    def read(self) -> dict[str, Any]:
        """The configuration as plain data, in which values are set."""

    @abstractmethod
    def check(self, values: Mapping[str, Any]) -> None:
        """Raises a ValueError if the command would refuse these values before it trains."""

    @abstractmethod
    def train(self, values: Mapping[str, Any], report: Report, seed: int, folder: Path) -> float:
        """Trains with these values and measures the result.

        Args:
            values: the configuration.
            report: called with every measurement.
            seed: of the study; used where the configuration has none of its own.
            folder: for what several trials share.
        """

    def file(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """A configuration as the command's file holds it."""
        return dict(values)

    @abstractmethod
    def command_line(self, path: Path) -> str:
        """The command that trains with such a file."""


class _Opponents(Section):
    """Whom the trained player meets: the worst rho counts, so the lowest for a host."""

    opponents: Annotated[list[str], Len(1)]
    games: Size
    seed: Count


class _Rho(_Opponents):
    every_updates: PositiveCount


def _check_opponents(names: list[str], seat: str) -> None:
    for name in names:
        with errors_of("target.measure.opponents"):
            resolve_player(name, "agent" if seat == "host" else "host")


def _read_measure(data: Any) -> Any:
    if data == "accuracy":
        return data
    if not isinstance(data, (_Opponents, Mapping)):
        raise ValueError(
            f" must be accuracy or a mapping with opponents, games and seed, got {shown(data)}"
        )
    return read_section(_Opponents, data, "target.measure")


class _Reported(RhoEvaluation):
    def __init__(self, measure: _Rho, report: Report) -> None:
        every = {"updates": measure.every_updates}
        super().__init__(measure.opponents, every, games=measure.games, seed=measure.seed)
        self._report = report

    def evaluate(self) -> dict[str, float]:
        results = super().evaluate()
        self._report(self.history[-1]["updates"], self.history[-1]["score"])
        return results


@TARGETS.register("train")
class Train(Target):
    """The last rho of ``python -m sb3_ext.train`` against fixed opponents."""

    algo: str
    env: str
    measure: _Rho

    def read(self) -> dict[str, Any]:  # noqa: D102
        sections = read_sections(find_config(self.config))
        if found := sections.get(self.env, sections.get("default")):
            return dict(found)
        raise ConfigError(f"target.env: {self.config} has no section {self.env!r} and no 'default'")

    def check(self, values: Mapping[str, Any]) -> None:  # noqa: D102
        known = known_algorithms()
        if self.algo not in known:
            raise ConfigError(f"target.algo: {unknown_word('algorithm', self.algo, known)}")
        check_hyperparameters(values, known[self.algo], self.env)
        try:
            env = gymnasium.make(self.env, **values.get("env_kwargs", {}))
        except (*REFUSALS, gymnasium.error.Error) as error:
            raise ConfigError(f"target.env or env_kwargs: {one_line(error)}") from None
        with closing(env):
            _check_opponents(self.measure.opponents, seat_of(env)[0])

    def train(self, values: Mapping[str, Any], report: Report, seed: int, folder: Path) -> float:  # noqa: D102
        evaluation = _Reported(self.measure, report)
        with TemporaryDirectory() as place:
            path = Path(place, "trial.yml")
            path.write_text(yaml.safe_dump(self.file(values)), encoding="utf-8")
            named = {"algo": self.algo, "env": self.env, "conf-file": path, "seed": seed}
            fixed = {"eval-freq": -1, "log-interval": -1, "num-threads": 1, "verbose": 0}
            arguments = [f"--{name}={value}" for name, value in {**named, **fixed}.items()]
            train(["-f", place, *arguments, "--checkpoint-updates", "0"], watching=(evaluation,))
        return float(evaluation.history[-1]["score"])

    def file(self, values: Mapping[str, Any]) -> dict[str, Any]:  # noqa: D102
        return {self.env: dict(values)}

    def command_line(self, path: Path) -> str:  # noqa: D102
        return f"python -m sb3_ext.train --algo {self.algo} --env {self.env} --conf-file {path}"


@TARGETS.register("two_player")
class TwoPlayer(Target):
    """The last score of a role, against its ``evaluation.opponents``."""

    role: str

    def read(self) -> dict[str, Any]:  # noqa: D102
        return dict(read_mapping(find_config(self.config, "two_player")))

    def check(self, values: Mapping[str, Any]) -> None:  # noqa: D102
        config = TrainerConfig.read(values)
        if self.role not in config.training.players:
            raise ConfigError(
                f"target.role: {unknown_word('trained role', self.role, config.training.players)}"
            )
        if not config.evaluation.opponents[self.role]:
            raise ConfigError(f"evaluation.opponents.{self.role} must name a player to measure by")

    def train(self, values: Mapping[str, Any], report: Report, seed: int, folder: Path) -> float:  # noqa: D102
        def look(trainer: HostAgentTrainer) -> None:
            last = trainer.history[-1] if trainer.history else None
            if last is not None and last.step == trainer.total_steps:
                report(last.step, last.scores[self.role])

        with closing(HostAgentTrainer(values)) as trainer:
            last = trainer.train(callback=look)
        assert last
        return last.scores[self.role]

    def command_line(self, path: Path) -> str:  # noqa: D102
        return f"python -m sb3_ext.two_player --config {path}"


@TARGETS.register("attack")
class Attack(Target):
    """The worst rho that the budget's responder brings a player to, on the validation's starts.

    The mean over the budget's seeds, of the best version of each, before any lookahead. The starts
    of the test stay unseen.
    """

    player: str
    seat: Literal["host", "agent"] | None = None

    def read(self) -> dict[str, Any]:  # noqa: D102
        return dict(read_mapping(find_config(self.config, "attack")))

    def check(self, values: Mapping[str, Any]) -> None:  # noqa: D102
        seated(self.player, AttackConfig.read(values).game.spec(), self.seat)

    def train(self, values: Mapping[str, Any], report: Report, seed: int, folder: Path) -> float:  # noqa: D102
        config = AttackConfig.read(values)
        player = seated(self.player, config.game.spec(), self.seat)
        found, before = list[float](), Used()

        def look(used: Used, *, exact: bool = True, **metrics: float) -> bool:
            if metrics:
                report(used.updates + len(found), fmean([*found, *metrics.values()]))
            return True

        for each in config.seeds:
            model, best = trained(player, config, each, look, before)
            before = Used(before.updates + model.num_updates)
            assert best.best_score is not None
            found.append(best.best_score)
        return fmean(found)

    def command_line(self, path: Path) -> str:  # noqa: D102
        seat = f" --role {self.seat}" if self.seat else ""
        return f"python -m sb3_ext.attack {self.player}{seat} --budget {path}"


@TARGETS.register("teach")
class Teach(Target):
    """The best version of a taught player.

    Attributes:
        measure: ``accuracy``: the part of the optimal choices among the training positions that
            are kept back (never the held-out ones), or games as in `_Opponents`.
    """

    measure: Annotated[Any, checked(_read_measure)]

    def read(self) -> dict[str, Any]:  # noqa: D102
        return dict(read_mapping(find_config(self.config)))

    def check(self, values: Mapping[str, Any]) -> None:  # noqa: D102
        config = TaughtConfig.read(values)
        if config.rounds is not None:
            raise ConfigError(
                "rounds must be null, since the first training alone is tuned, got "
                f"{shown(values['rounds'])}; write settings: {{rounds: null}}"
            )
        read_hyperparameters(config.algorithm.file, ENVIRONMENTS[config.data.seat])
        if isinstance(self.measure, _Opponents):
            _check_opponents(self.measure.opponents, config.data.seat)

    def train(self, values: Mapping[str, Any], report: Report, seed: int, folder: Path) -> float:  # noqa: D102
        config = TaughtConfig.read(values)
        environment = ENVIRONMENTS[config.data.seat]
        hyperparameters = read_hyperparameters(config.algorithm.file, environment)
        content = json.dumps(config.data.content(), sort_keys=True, default=str)
        place = folder / f"data-{hashlib.sha256(content.encode()).hexdigest()[:12]}"
        with FileLock(place.with_suffix(".lock")):  # who comes second reads what is there
            data = prepared(config.data, place)
        model, reward = build_model(environment, hyperparameters, data.dimension, config.train.seed)
        with closing(model.get_env()):  # type: ignore[type-var]
            pretraining = Pretraining(model, data, config.train, reward)
            pretraining.run(
                report=lambda entry: report(entry["update"], self._measured(model, pretraining))
            )
            return self._measured(model, pretraining)

    def _measured(self, model: Any, pretraining: Pretraining) -> float:
        if isinstance(self.measure, str):
            assert pretraining.best
            return float(pretraining.best["accuracy"])
        seat, points = seat_of(model.policy)
        mine, found = player_of(model), []
        for other in self.measure.opponents:
            host, agent = (mine, other) if seat == "host" else (other, mine)
            games = {"games": self.measure.games, "seed": self.measure.seed}
            sizes = {"max_num_points": points.shape[0], "dimension": points.shape[1]}
            found.append(rho(host, agent, **games, **sizes).rho)
        return min(found) if seat == "host" else max(found)

    def command_line(self, path: Path) -> str:  # noqa: D102
        return f"python -m sb3_ext.teach run --config {path} --out runs/taught-best"
