"""One step of the trainer: the order of its operations, and how long they take."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch

from sb3_ext.two_player.pool import OpponentPool
from sb3_ext.two_player.roles import Learner
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
        seconds: time spent by kind of work.
    """

    def __init__(
        self,
        roles: Mapping[str, Learner],
        schedules: Mapping[str, UpdateSchedule],
        pool: OpponentPool | None,
    ) -> None:
        self.roles, self.schedules, self.pool = roles, schedules, pool
        self.total = 0
        self.seconds = {"evaluation": 0.0, "rollout": 0.0, "update": 0.0}

    @contextmanager
    def timed(self, work: str) -> Iterator[None]:
        """Add the time spent inside to a kind of work."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[work] += time.perf_counter() - started

    def step(self, players: Sequence[str]) -> None:
        """One update of each of these roles that is due, in this order, with its rollout."""
        if self.pool is not None:
            self.pool.before_step(self.total)
        for name in players:
            if self.schedules[name].is_due(name, self.total):
                self._run(self.roles[name])
        self.total += 1

    def _run(self, learner: Learner) -> None:
        with self.timed("update"):
            if learner.target_is_due():
                learner.update_target()
            learner.gradient_step()
        if learner.rollout_is_due():
            with self.timed("rollout"):
                learner.collect_rollout()

    def collect_initial_rollouts(self, players: Sequence[str]) -> None:
        """Give those of these roles their first experience that have none."""
        for name in players:
            learner = self.roles[name]
            if not learner.has_experience:
                with self.timed("rollout"):
                    learner.collect_rollout(learner.section.rollout.initial_rollout_size)


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
