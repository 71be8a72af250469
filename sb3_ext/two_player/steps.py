"""One step of the trainer: the order of its operations, and how long they take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch

from sb3_ext.callbacks.timers import Stopwatch
from sb3_ext.two_player.learner import Learner
from sb3_ext.two_player.pool import OpponentPool
from sb3_ext.two_player.update_schedule import UpdateSchedule

__all__ = ["Steps", "torch_threads"]


class Steps:
    """Makes the steps of a trainer.

    Args:
        roles: the roles that learn.
        schedules: which of them is updated when.
        pool: the opponent pool, or None.

    Attributes:
        total: steps made since the trainer began; all rhythms are counted by it or by the updates
            of a role, so they go on over several calls of `train` and after a resume.
        watch: time spent by kind of work.
    """

    def __init__(
        self,
        roles: Mapping[str, Learner],
        schedules: Mapping[str, UpdateSchedule],
        pool: OpponentPool | None,
    ) -> None:
        self.roles, self.schedules, self.pool = roles, schedules, pool
        self.total = 0
        self.watch = Stopwatch()
        self.load_seconds(dict.fromkeys(("evaluation", "rollout", "update"), 0.0))

    @property
    def seconds(self) -> dict[str, float]:
        """Time spent by kind of work, in this process and those that it goes on from."""
        return {work: seconds for work, (seconds, _) in self.watch.totals.items()}

    def load_seconds(self, seconds: Mapping[str, float]) -> None:
        """Go on from what `seconds` was."""
        self.watch.totals |= {work: (spent, 0) for work, spent in seconds.items()}

    def step(self, players: Sequence[str]) -> None:
        """One update of each of these roles that is due, in this order, with its rollout."""
        if self.pool is not None:
            self.pool.before_step(self.total)
        for name in players:
            if self.schedules[name].is_due(name, self.total):
                self._run(self.roles[name])
        self.total += 1

    def _run(self, learner: Learner) -> None:
        with self.watch.section("update"):
            learner.update()
        if learner.rollout_is_due():
            with self.watch.section("rollout"):
                learner.collect()

    def collect_initial_rollouts(self, players: Sequence[str]) -> None:
        """Give those of these roles their first experience that have none."""
        for name in players:
            learner = self.roles[name]
            if not learner.has_experience:
                with self.watch.section("rollout"):
                    learner.collect(learner.initial_games)


@contextmanager
def torch_threads(count: int | None) -> Iterator[None]:
    """Let tensor operations use so many threads (None: as they are), and as before afterwards."""
    before = torch.get_num_threads()
    if count is not None:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
