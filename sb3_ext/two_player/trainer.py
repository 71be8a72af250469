"""The trainer of two roles that learn against each other; `docs/two_player.md` draws the loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sb3_ext.checkpoints.model_state import global_random_state, load_global_random_state
from sb3_ext.checkpoints.resume import init_from
from sb3_ext.config.checks import check_count
from sb3_ext.config.registry import unknown_word
from sb3_ext.config.sections import ConfigError
from sb3_ext.ddqn.state import Stopwatch
from sb3_ext.runs.checkpoint import load_checkpoint, save_checkpoint
from sb3_ext.runs.command_line import SWITCHES, numerics, torch_threads
from sb3_ext.two_player.config import TrainerConfig
from sb3_ext.two_player.players import TwoPlayers
from sb3_ext.two_player.turns import Alternating


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


class HostAgentTrainer(TwoPlayers):
    """Trains a host and an agent, or one of them against a player that does not learn.

    Args:
        config: see `TwoPlayers`.
        **arguments: of `TwoPlayers`: ``nets``, ``rewards``, ``opponents``, ``callbacks``.

    Attributes:
        output: has `add_metrics` and `add_evaluation`, which are given what is found; or None.
        history: the measurements of the players, the oldest first.
        seconds: time spent on updates, rollouts and evaluations, over resumes too.
        stopped: whether the last `train` was asked to stop.
        total_steps: steps made, over all calls of `train` and resumes.
        turns: which role is updated in which step.
        best_scores: by role the best of `Evaluation.scores` so far.
    """

    def __init__(
        self, config: TrainerConfig | Mapping[str, Any] | str | Path, **arguments: Any
    ) -> None:
        super().__init__(config, **arguments)
        self.output: Any = None
        self.history: list[Evaluation] = []
        self.total_steps = 0
        self.best_scores: dict[str, float] = {}
        self.turns = self.config.turns()
        names = {f"{self.game.measure}/score", *self.measured}
        for name in self.turns.fields - names:
            raise ConfigError(f"training.updates.until: {unknown_word('field', name, names)}")
        self.seconds = Stopwatch(evaluation=0.0, rollout=0.0, update=0.0)
        self.stopped = False

    def train(
        self,
        steps: int | None = None,
        evaluation_interval: int | None = None,
        players: Sequence[str] | None = None,
        *,
        callback: Callable[[HostAgentTrainer], bool | None] | None = None,
    ) -> Evaluation | None:
        """Makes steps, fewer if the last of its phases is over, then measures the players.

        Args:
            steps: number of steps, 0 to finish a run that was killed then; None: `training.steps`.
            evaluation_interval: steps between measurements, counted over all calls; None:
                `evaluation.every_steps`.
            players: roles to train, in the order of their updates; None: those of
                `training.players` that are not frozen.
            callback: called with the trainer after each step; False stops. So does a callback of a
                role that ends training, such as `StopConditions`.

        Returns:
            The measurement at the end. After `request_stop`, when none is made, the last one; None
            if there was none.

        Raises:
            ValueError: a role that does not learn, or that is frozen.
            FloatingPointError: a loss or a weight became NaN or infinite. Nothing of it is saved.
        """
        steps = self.config.training.steps if steps is None else check_count("steps", steps, low=0)
        interval = self.config.evaluation.every_steps
        if evaluation_interval is not None:
            interval = check_count("evaluation_interval", evaluation_interval)
        names = self._players_to_train(players)
        self.stopped = False
        learners = [self.roles[name] for name in names]
        end = self.total_steps + steps
        compute = self.config.compute
        exactly = numerics(**compute.model_dump(include=set(SWITCHES)))
        with torch_threads(compute.torch_threads), exactly, self.collecting():
            for learner in learners:
                learner.begin()
            if steps and not any(learner.wants_to_stop for learner in learners):
                self.collect_initial_rollouts(names)
            while self.total_steps < self.turns.last_step(end):
                if any(learner.wants_to_stop for learner in learners):
                    break
                self.step(names)
                step = self.total_steps
                if step % self.config.logging.every_steps == 0:
                    self.log_metrics()
                if step % interval == 0 or self.turns.runs_out(step):
                    self._observe(self.evaluate())
                if self.turns.advance(step):
                    self._begin_phase(names)
                if (callback is not None and callback(self) is False) or self.stopped:
                    break
            for learner in learners:
                learner.end()
            measured = bool(self.history) and self.history[-1].step == self.total_steps
            if not measured and not self.stopped:
                self.evaluate()
        return self.history[-1] if self.history else None

    def collect_initial_rollouts(self, players: Sequence[str]) -> None:
        """Give those of these roles whose turn it is their first experience."""
        for name in players:
            learner = self.roles[name]
            if self._in_phase(name) and not learner.has_experience:
                with self.seconds.timed("rollout"):
                    learner.collect(learner.initial_games)

    def step(self, players: Sequence[str]) -> None:
        """One update of each of these roles that is due, in this order, with its rollout."""
        if self.pool is not None:
            self.pool.before_step(self.total_steps)
        for name in players:
            learner = self.roles[name]
            if self.turns.is_due(name, self.total_steps):
                with self.seconds.timed("update"):
                    learner.update()
                if learner.rollout_is_due():
                    with self.seconds.timed("rollout"):
                        learner.collect()
        self.total_steps += 1

    @property
    def measured(self) -> set[str]:
        """Names of what evaluations measure, ``<measure>/<pair>``."""
        return {f"{self.game.measure}/{pair}" for pair in self.pairs()}

    def _in_phase(self, role: str) -> bool:
        return not isinstance(self.turns, Alternating) or self.turns.is_due(role, self.total_steps)

    def _observe(self, evaluation: Evaluation) -> None:
        values = dict(evaluation.values)
        for role, score in evaluation.scores.items():
            if self.turns.is_due(role, evaluation.step - 1):
                values["score"] = score
        self.turns.observe({f"{self.game.measure}/{k}": v for k, v in values.items()})

    def _begin_phase(self, players: Sequence[str]) -> None:
        number = self.turns.number
        for name in players if self.turns.fresh and number > 1 else ():
            if self._in_phase(name):
                words = (self.config.seed, self.game.roles.index(name), number)
                self.begin_anew(name, int(np.random.SeedSequence(words).generate_state(1)[0]))
        self.collect_initial_rollouts(players)

    def request_stop(self) -> None:
        """Let `train` end after the step in progress; may be called from a signal handler.

        The players are not measured: a run that goes on from there measures them when the run that
        was not interrupted does.
        """
        self.stopped = True

    def _players_to_train(self, players: Sequence[str] | None) -> list[str]:
        if players is None:
            names = [n for n in self.config.training.players if not self.roles[n].frozen]
            if not names:
                raise ValueError(f"players: all of {self.config.training.players} are frozen")
            return names
        names = [players] if isinstance(players, str) else list(players)
        for name in names:
            if self.learner(name).frozen:
                raise ValueError(f"players: {name!r} is frozen, call unfreeze({name!r}) first")
        if not names or len(set(names)) < len(names):
            raise ValueError(f"players must name each role once, got {names}")
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

        A score is the worst value over a role's scripted opponents: the lowest for the first role,
        who wants high values, the highest for the second.
        """
        for role in self.roles:
            worst, sign = (min, 1) if role == self.game.roles[0] else (max, -1)
            names = [self.game.pair_name(role, name) for name in self._measured_against[role]]
            if not names:
                continue
            score = evaluation.scores[role] = worst(evaluation.values[name] for name in names)
            if role not in self.best_scores or sign * score > sign * self.best_scores[role]:
                self.best_scores[role] = score
                evaluation.improved.append(role)

    def log_metrics(self) -> dict[str, float]:
        """What the roles measured since the last call; written to the run's folder, if any.

        Errors as `evaluate`.
        """
        metrics: dict[str, float] = {}
        for name, learner in self.roles.items():
            found = learner.metrics(self.config.logging.layers)
            metrics |= {f"{name}/{key}": value for key, value in found.items()}
        if isinstance(self.turns, Alternating):
            metrics["phase"] = self.turns.number
        metrics |= {f"time/{work}_seconds": spent for work, spent in self.seconds.items()}
        if self.pool is not None:
            metrics |= {f"elo/{name}": rating for name, rating in self.pool.ratings.items()}
        if self.output is not None:
            self.output.add_metrics(metrics)
        return metrics

    def state_dict(self) -> dict[str, Any]:
        """Everything that training depends on, as parts of a checkpoint.

        ``trainer`` holds the configuration, counters and measurements, ``pool`` snapshots, ratings
        and who is in play, ``random`` the global generators (SB3's own algorithms draw from them),
        and ``<role>.policy``, ``<role>.buffer`` and so on what `Learner.state_dict` gives. Errors
        as `evaluate`: a spoiled model is not worth saving.
        """
        state: dict[str, Any] = {
            "random": global_random_state(),
            "trainer": {
                "best_scores": dict(self.best_scores),
                "config": self.config.to_dict(),
                "frozen": [name for name, learner in self.roles.items() if learner.frozen],
                "history": [asdict(evaluation) for evaluation in self.history],
                "seconds": dict(self.seconds),
                "total_steps": self.total_steps,
                "turns": self.turns.state_dict(),
            },
        }
        for learner in self.roles.values():
            learner.check_finite()
            state |= learner.state_dict()
        if self.pool is not None:
            state["pool"] = self.pool.state_dict()
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave; of another configuration it is a CheckpointError."""
        trainer = state["trainer"]
        for role, learner in self.roles.items():
            learner.load_state_dict(state)
            learner.frozen = role in trainer["frozen"]
        if self.pool is not None:
            self.pool.load_state_dict(state["pool"])
        self.turns.load_state_dict(trainer["turns"])
        self.history = [Evaluation(**entry) for entry in trainer["history"]]
        self.best_scores = dict(trainer["best_scores"])
        self.total_steps = int(trainer["total_steps"])
        self.seconds = Stopwatch(trainer["seconds"])
        load_global_random_state(state["random"])

    def save(self, path: str | Path) -> Path:
        """Write a checkpoint as the directory `path`."""
        return save_checkpoint(path, self.state_dict())

    @classmethod
    def load(cls, path: str | Path, **arguments: Any) -> HostAgentTrainer:
        """A trainer that goes on where one was saved.

        Args:
            path: what `save` wrote, or a folder of checkpoints, for its newest valid one.
            **arguments: of the constructor; networks, rewards and opponents that were given from
                outside have to be given again.

        Raises:
            CheckpointError: there is no valid checkpoint, or it does not fit.
        """
        state = load_checkpoint(path)
        config = TrainerConfig.saved(state["trainer"]["config"], path)
        trainer = cls(config, **arguments)
        trainer.load_state_dict(state)
        return trainer

    def init_from(self, path: str | Path) -> None:
        """Take over the networks of a checkpoint, nothing else: counters and schedules start new.

        Errors as `load`.
        """
        for role, learner in self.roles.items():
            init_from(learner.model, path, role)
