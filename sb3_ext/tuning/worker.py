"""One worker of a study: takes trials until the study has as many as it shall have."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import gymnasium
import optuna
from optuna.storages import fail_stale_trials
from optuna.storages._heartbeat import get_heartbeat_thread
from optuna.trial import FrozenTrial, TrialState

from sb3_ext.config.arguments import REFUSALS
from sb3_ext.config.checks import one_line
from sb3_ext.tuning.storage import Retry
from sb3_ext.tuning.study_file import StudyConfig

ERROR = "error"
"""Attribute of a trial that failed by its settings: what was wrong."""
_REFUSED = (*REFUSALS, gymnasium.error.Error)
_LOOK_SECONDS = 0.5


class Stopped(BaseException):
    """The training in progress shall end; nothing on its way may take this for an error."""


class StopRequest:
    """What a signal sets; while a trial trains, it raises `Stopped` at once.

    Args:
        parent: the process that this one must not outlive; None: there is none.
        over: called now and then; True has the same effect.
    """

    def __init__(self, parent: int | None = None, over: Callable[[], bool] = lambda: False) -> None:
        self.parent, self._over, self._asked, self._training = parent, over, False, False

    def ask(self, *_: object) -> None:
        """May be called from a signal handler."""
        self._asked = True
        if self._training:
            raise Stopped

    @property
    def asked(self) -> bool:
        """Whether to stop."""
        self._asked = self._asked or self._over()
        return self._asked or self.parent not in (None, os.getppid())

    @contextmanager
    def training(self, trains: bool = True) -> Iterator[None]:
        """A block that may be left at any place; with False, one inside of it that may not."""
        if trains and self.asked:
            raise Stopped
        before, self._training = self._training, trains
        try:
            yield
        finally:
            self._training = before
        if before and self.asked:
            raise Stopped


def counts(trial: FrozenTrial) -> bool:
    """Whether it is one of the trials that the study shall have.

    Trials that were given up are tried again under another number and do not count themselves.
    """
    return trial.state is not TrialState.FAIL or ERROR in trial.user_attrs


def work(
    study: optuna.Study,
    config: StudyConfig,
    trials: int,
    folder: Path,
    stop: StopRequest,
    say: Callable[[str], None],
) -> None:
    """Tries until so many trials are finished by all workers, or until it is stopped.

    Trials of workers that died are given up and tried again; the last worker waits for them.

    Args:
        study: of `open_study`.
        config: what to try.
        trials: how many there shall be, by all workers.
        folder: see `Target.train`.
        stop: ends it; the trial in progress waits for another worker.
        say: called with a line for every trial.
    """
    while not stop.asked:
        fail_stale_trials(study)
        known = [trial for trial in study.get_trials(deepcopy=False) if counts(trial)]
        waiting = any(trial.state is TrialState.WAITING for trial in known)
        if waiting or len(known) < trials:
            trial = study.ask()
            earlier = study.get_trials(deepcopy=False)[: trial.number]
            if sum(map(counts, earlier)) >= trials:  # another worker was quicker
                study.tell(trial, state=TrialState.FAIL)
            else:
                _try(study, trial, config, folder, stop, say)
        elif all(trial.state.is_finished() for trial in known):
            return
        else:
            time.sleep(_LOOK_SECONDS)


def _try(
    study: optuna.Study,
    trial: optuna.Trial,
    config: StudyConfig,
    folder: Path,
    stop: StopRequest,
    say: Callable[[str], None],
) -> None:
    begin, about = time.monotonic(), f"trial {trial.number}"

    def report(step: int, value: float) -> None:
        with stop.training(False):  # the storage is never left halfway
            trial.report(value, step)
            if trial.should_prune():
                raise optuna.TrialPruned(f"pruned after {step} with {value:.4f}")

    def tell(state: TrialState, value: float | None = None) -> None:
        study.tell(trial, value, state=state, skip_if_finished=True)

    def put_back() -> None:
        tell(TrialState.FAIL)
        with_parameters = study.get_trials(deepcopy=True)[trial.number]
        Retry()(study, with_parameters)

    try:
        with get_heartbeat_thread(trial._trial_id, study._storage), stop.training():
            with stop.training(False):
                values = config.suggest(trial)
            value = config.target.train(values, report, config.seed, folder)
        tell(TrialState.COMPLETE, value)
        result = f"{value:.4f}"
    except optuna.TrialPruned as pruned:
        tell(TrialState.PRUNED)
        result = str(pruned)
    except Stopped:
        put_back()
        result = "stopped; it waits for another worker"
    except _REFUSED as error:
        if study.get_trials(deepcopy=False)[trial.number].state.is_finished():
            result = "was silent for too long; another worker tries it again"
        else:
            trial.set_user_attr(ERROR, f"{type(error).__name__}: {one_line(error)}")
            tell(TrialState.FAIL)
            result = f"failed: {one_line(error)}"
    except BaseException:
        put_back()
        raise
    say(f"{about}: {result} ({time.monotonic() - begin:.0f} s)")
