"""The trainer of two roles that learn against each other; `docs/two_player.md` draws the loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sb3_ext.checkpoints.models import global_random_state, load_global_random_state
from sb3_ext.checkpoints.resume import init_from
from sb3_ext.config.checks import check_count
from sb3_ext.config.sections import read_as
from sb3_ext.ddqn.logs import Stopwatch
from sb3_ext.runs.checkpoint import checkpoint_errors, load_checkpoint, save_checkpoint
from sb3_ext.runs.command import numerics, torch_threads
from sb3_ext.two_player.config import TrainerConfig
from sb3_ext.two_player.hironaka import ROLES, pair_name
from sb3_ext.two_player.players import TwoPlayers
from sb3_ext.types import Metrics, StateDict


@dataclass
class Evaluation:
    """One measurement of one version of the players.

    Attributes:
        step: steps of the trainer when it was made.
        versions: updates of each learning role at that time.
        values: rho by pair, such as ``host-choose_first``.
        actions: how often each learning role took each action.
        scores: by learning role, the value that decides which version is best.
        improved: learning roles whose score was better than ever before.
        ratings: ratings of the roles, if there is a pool.
    """

    step: int
    versions: dict[str, int]
    values: Metrics
    actions: dict[str, list[int]]
    scores: Metrics = field(default_factory=dict)
    improved: list[str] = field(default_factory=list)
    ratings: Metrics = field(default_factory=dict)

    @property
    def metrics(self) -> Metrics:
        """The values under the names that logs and stop rules use, such as ``rho/host-agent``."""
        return {f"rho/{pair}": value for pair, value in self.values.items()}


class HostAgentTrainer(TwoPlayers):
    """Trains a host and an agent, or one of them against a player that does not learn.

    Args:
        config: see `TwoPlayers`.
        **arguments: of `TwoPlayers`: ``nets``, ``rewards``, ``callbacks``, ``folder``.

    Attributes:
        output: has `add_metrics` and `add_evaluation`, which are given what is found; or None.
        history: the measurements of the players, the oldest first.
        seconds: time spent on updates, rollouts and evaluations, over resumes too.
        total_steps: steps made, over all calls of `train` and resumes.
        best_scores: by role the best of `Evaluation.scores` so far.
    """

    def __init__(
        self, config: TrainerConfig | Mapping[str, Any] | str | Path, **arguments: Any
    ) -> None:
        super().__init__(config, **arguments)
        self.output: Any = None
        self.history: list[Evaluation] = []
        self.total_steps = 0
        self.best_scores: Metrics = {}
        self.seconds = Stopwatch(evaluation=0.0, rollout=0.0, update=0.0)
        self._updates = self.config.updates

    def train(
        self,
        steps: int | None = None,
        evaluation_interval: int | None = None,
        players: Sequence[str] | None = None,
        *,
        callback: Callable[[HostAgentTrainer], bool | None] | None = None,
    ) -> Evaluation:
        """Makes steps, then measures the players.

        Args:
            steps: number of steps, 0 to finish a run that was killed then; None: `training.steps`.
            evaluation_interval: steps between measurements, counted over all calls; None:
                `evaluation.every_steps`.
            players: roles to train, in the order of their updates; None: those of
                `training.players` that are not frozen.
            callback: called with the trainer after each step; False stops. So does a callback of a
                role that ends training, such as `StopConditions`.

        Returns:
            The measurement at the end.

        Raises:
            ValueError: a role does not learn or is frozen.
            FloatingPointError: a loss or a weight became NaN or infinite. Nothing of it is saved.
        """
        steps = self.config.training.steps if steps is None else check_count("steps", steps, low=0)
        interval = self.config.evaluation.every_steps
        if evaluation_interval is not None:
            interval = check_count("evaluation_interval", evaluation_interval)
        names = self._players_to_train(players)
        learners = [self.roles[name] for name in names]
        end = self.total_steps + steps
        compute = self.config.compute
        with torch_threads(compute.torch_threads), numerics(compute):
            for learner in learners:
                learner.begin()
            while self.total_steps < end:
                if not any(learner.wants_to_stop for learner in learners):
                    self.begin_windows(names)
                if any(learner.wants_to_stop for learner in learners):
                    break
                self.step(names)
                if self.total_steps % self.config.logging.every_steps == 0:
                    self.log_metrics()
                if self.total_steps % interval == 0:
                    self.evaluate()
                if callback is not None and callback(self) is False:
                    break
            for learner in learners:
                learner.callback.on_training_end()
            if not self.history or self.history[-1].step < self.total_steps:
                self.evaluate()
        return self.history[-1]

    def begin_windows(self, players: Sequence[str]) -> None:
        """Before a step: reset roles whose window begins, if `fresh`; collect first experience."""
        updates = self._updates
        step = self.total_steps
        if updates is not None and updates.fresh and step >= updates.period:
            for role in players:
                if step % updates.period == getattr(updates, role)[0]:
                    words = (self.config.seed, ROLES.index(role), step)
                    self.begin_anew(role, int(np.random.SeedSequence(words).generate_state(1)[0]))
        self.collect_initial_rollouts(players)

    def collect_initial_rollouts(self, players: Sequence[str]) -> None:
        """Give those of these roles whose turn it is their first experience."""
        for role in filter(self._is_due, players):
            learner = self.roles[role]
            if not learner.buffer.size():
                games = getattr(learner.section.rollout, "initial_rollout_size", None)
                with self.seconds.timed("rollout"):
                    learner.collect(games)

    def step(self, players: Sequence[str]) -> None:
        """Target, update and rollout of each of these roles that is due, in this order.

        As in the original trainer's loop; a target and a rollout have periods of their own.
        """
        if self.pool is not None:
            self.pool.before_step(self.total_steps)
        for role in filter(self._is_due, players):
            learner = self.roles[role]
            with self.seconds.timed("update"):
                if learner.target_is_due():
                    learner.update_target()
                learner.update()
            if learner.rollout_is_due():
                with self.seconds.timed("rollout"):
                    learner.collect()
        self.total_steps += 1

    def _is_due(self, role: str) -> bool:
        return self._updates is None or self._updates.is_due(role, self.total_steps)

    def _players_to_train(self, players: Sequence[str] | None) -> list[str]:
        if players is None:
            players = [n for n in self.config.training.players if not self.roles[n].frozen]
        names = [players] if isinstance(players, str) else list(players)
        frozen = [name for name in names if self.learner(name).frozen]
        if not names or frozen:
            raise ValueError(f"players: got {names}; expected roles that are not frozen")
        return names

    def evaluate(self) -> Evaluation:
        """Measure the players as they are; a FloatingPointError for a spoiled one."""
        for learner in self.roles.values():
            learner.check_finite()
        with self.seconds.timed("evaluation"):
            evaluation = Evaluation(
                step=self.total_steps,
                versions={name: learner.updates for name, learner in self.roles.items()},
                values=self.evaluate_rho(),
                actions={name: self.count_actions(name) for name in self.roles},
                ratings={} if self.pool is None else dict(self.pool.ratings),
            )
        self._judge(evaluation)
        self.history.append(evaluation)
        if self.output is not None:
            self.output.add_evaluation(evaluation)
        return evaluation

    def _judge(self, evaluation: Evaluation) -> None:
        """Fill in scores, and which of them are the best so far.

        A score is the worst value over a role's fixed opponents: the lowest for the host, the
        highest for the agent.
        """
        for role in self.roles:
            worst, sign = (min, 1) if role == "host" else (max, -1)
            names = [pair_name(role, name) for name in self._measured_against[role]]
            if not names:
                continue
            score = evaluation.scores[role] = worst(evaluation.values[name] for name in names)
            if role not in self.best_scores or sign * score > sign * self.best_scores[role]:
                self.best_scores[role] = score
                evaluation.improved.append(role)

    def log_metrics(self) -> Metrics:
        """What the roles measured since the last call; written to the run's folder, if any.

        Errors as `evaluate`.
        """
        metrics: Metrics = {}
        for name, learner in self.roles.items():
            found = learner.metrics(self.config.logging.layers)
            metrics |= {f"{name}/{key}": value for key, value in found.items()}
        metrics |= {f"time/{work}_seconds": spent for work, spent in self.seconds.items()}
        if self.pool is not None:
            metrics |= {f"elo/{name}": rating for name, rating in self.pool.ratings.items()}
        if self.output is not None:
            self.output.add_metrics(metrics)
        return metrics

    def state_dict(self) -> StateDict:
        """Everything that training depends on, as parts of a checkpoint.

        ``trainer`` holds the configuration, counters and measurements, ``pool`` snapshots, ratings
        and who is in play, ``random`` the global generators (SB3's own algorithms draw from them),
        and ``<role>.policy``, ``<role>.buffer`` and so on what `Learner.state_dict` gives. Errors
        as `evaluate`: a spoiled model is not worth saving.
        """
        state = {
            "random": global_random_state(),
            "trainer": {
                "best_scores": dict(self.best_scores),
                "config": self.config.to_dict(),
                "frozen": [name for name, learner in self.roles.items() if learner.frozen],
                "history": [asdict(evaluation) for evaluation in self.history],
                "seconds": dict(self.seconds),
                "total_steps": self.total_steps,
            },
        }
        for learner in self.roles.values():
            state |= learner.state_dict()
        if self.pool is not None:
            state["pool"] = self.pool.state_dict()
        return state

    def load_state_dict(self, state: StateDict) -> None:
        """Continue from a saved `state_dict`.

        Raises:
            CheckpointError: the state is of another configuration.
        """
        trainer = state["trainer"]
        for role, learner in self.roles.items():
            learner.load_state_dict(state)
            learner.frozen = role in trainer["frozen"]
        if self.pool is not None:
            self.pool.load_state_dict(state["pool"])
        self.history = read_as(list[Evaluation], trainer["history"])
        self.best_scores = read_as(Metrics, trainer["best_scores"])
        self.total_steps = int(trainer["total_steps"])
        self.seconds = Stopwatch(read_as(Metrics, trainer["seconds"]))
        load_global_random_state(state["random"])

    def save(self, path: str | Path) -> Path:
        """Write a checkpoint as the directory `path`."""
        return save_checkpoint(path, self.state_dict())

    @classmethod
    def load(cls, path: str | Path, **arguments: Any) -> HostAgentTrainer:
        """A trainer that continues where one was saved.

        Args:
            path: what `save` wrote, or a folder of checkpoints, for its newest valid one.
            **arguments: of the constructor; networks and rewards that were given from outside have
                to be given again, and opponents set again.

        Raises:
            CheckpointError: there is no valid checkpoint, or it does not fit.
        """
        state = load_checkpoint(path)
        trainer = cls(TrainerConfig.saved(state["trainer"]["config"], path), **arguments)
        with checkpoint_errors(str(path)):
            trainer.load_state_dict(state)
        return trainer

    def init_from(self, path: str | Path) -> None:
        """Take over the networks of a checkpoint, nothing else: counters and schedules start new.

        Errors as `load`.
        """
        for role, learner in self.roles.items():
            init_from(learner.model, path, role)
