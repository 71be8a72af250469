"""Where the workers of a study meet: a journal file or a database, with signs of life.

Optuna's databases have heartbeats, its journals have none: `Journal` gives them to a journal file,
by the same interface, so that all else is Optuna's own.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import sqlalchemy.exc
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages._heartbeat import BaseHeartbeat
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from sb3_ext.config.checks import one_line
from sb3_ext.config.sections import ConfigError
from sb3_ext.studies.teach.pretraining import difference
from sb3_ext.tuning.study_file import StudyConfig

SILENT_INTERVALS = 6
"""A worker that gave no sign of life for so many intervals is taken for dead."""
RETRIES = 3
"""A trial whose workers died more often than this is left."""
HEARTBEAT = "heartbeat"

Retry: Any = getattr(
    optuna.storages,
    "RetryHeartbeatStaleTrialCallback",  # its name since Optuna 4.9
    getattr(optuna.storages, "RetryFailedTrialCallback", None),
)


class Journal(JournalStorage, BaseHeartbeat):
    """A journal file in which workers leave signs of life, as an attribute of their trial.

    A sign is only ever compared with the one before, by the clock of who looks, so the clocks of
    the machines need not agree.

    Args:
        path: the file.
        interval: seconds between two signs.
        retry: called with the study and a trial that was given up.
    """

    def __init__(self, path: Path, interval: int, retry: Any) -> None:
        super().__init__(JournalFileBackend(str(path)))
        self._interval, self._retry = interval, retry
        self._seen: dict[int, tuple[Any, float]] = {}

    def record_heartbeat(self, trial_id: int) -> None:  # noqa: D102
        with suppress(RuntimeError):  # wrongly given up by another worker
            self.set_trial_user_attr(trial_id, HEARTBEAT, time.time())

    def _get_stale_trial_ids(self, study_id: int) -> list[int]:
        now, running = time.monotonic(), (TrialState.RUNNING,)
        before, self._seen = self._seen, {}
        for trial in self.get_all_trials(study_id, deepcopy=False, states=running):
            sign = trial.user_attrs.get(HEARTBEAT)
            last, since = before.get(trial._trial_id, (None, now))
            self._seen[trial._trial_id] = (sign, since if sign == last else now)
        silent = SILENT_INTERVALS * self._interval
        return [trial for trial, (_, since) in self._seen.items() if now - since > silent]

    def get_heartbeat_interval(self) -> int | None:  # noqa: D102
        return self._interval

    def get_heartbeat_stale_trial_callback(self) -> Any:  # noqa: D102
        return self._retry

    get_failed_trial_callback = get_heartbeat_stale_trial_callback  # its name before Optuna 4.9


def open_storage(where: str, interval: int) -> BaseStorage:
    """The storage of a path (a journal file) or of a URL (a database).

    Raises:
        ConfigError: it cannot be opened.
    """
    retry = Retry(max_retry=RETRIES)
    try:
        if "://" not in where:
            Path(where).parent.mkdir(parents=True, exist_ok=True)
            return Journal(Path(where), interval, retry)
        names = inspect.signature(RDBStorage).parameters
        callback = "heartbeat_stale_trial_callback"
        callback = callback if callback in names else "failed_trial_callback"
        waits = {"connect_args": {"timeout": 60}} if where.startswith("sqlite") else {}
        return RDBStorage(
            where,
            engine_kwargs=waits,
            heartbeat_interval=interval,
            grace_period=SILENT_INTERVALS * interval,
            **{callback: retry},
        )
    except (
        ImportError,
        KeyError,
        OSError,
        RuntimeError,
        ValueError,
        sqlalchemy.exc.SQLAlchemyError,
    ) as error:
        raise ConfigError(
            "storage: must be a journal file or a URL such as sqlite:///study.db that can be "
            f"opened, got {where}: {type(error).__name__}: {one_line(error)}"
        ) from None


class SeededByTrial(BaseSampler):
    """A new sampler for every trial, whose seed is a function of the trial's number.

    So what is tried depends on the seed and on the trials before alone: workers draw different
    numbers, and a study that is taken up again goes on as if it had not been stopped.
    """

    def __init__(self, make: Callable[[int], BaseSampler], seed: int) -> None:
        self._make, self._seed = make, seed
        self._sampler = make(seed)

    def before_trial(self, study: Any, trial: Any) -> None:  # noqa: D102
        words = np.random.SeedSequence([self._seed, trial.number]).generate_state(1)
        self._sampler = self._make(int(words[0]))
        self._sampler.before_trial(study, trial)

    def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:  # noqa: D102
        return self._sampler.infer_relative_search_space(study, trial)

    def sample_relative(self, study: Any, trial: Any, search_space: Any) -> dict[str, Any]:  # noqa: D102
        return self._sampler.sample_relative(study, trial, search_space)

    def sample_independent(self, *arguments: Any, **named: Any) -> Any:  # noqa: D102
        return self._sampler.sample_independent(*arguments, **named)

    def after_trial(self, *arguments: Any, **named: Any) -> None:  # noqa: D102
        self._sampler.after_trial(*arguments, **named)


def open_study(config: StudyConfig, where: str, name: str, interval: int) -> optuna.Study:
    """The study of this name, which is made if there is none.

    Raises:
        ConfigError: the storage cannot be opened, or it holds another study of this name.
    """
    study = optuna.create_study(
        storage=open_storage(where, interval),
        study_name=name,
        direction=config.direction,
        sampler=SeededByTrial(config.make_sampler, config.seed),
        pruner=config.make_pruner(),
        load_if_exists=True,
    )
    wanted, found = config.identity(), study.user_attrs.get("study")
    if found is None:
        study.set_user_attr("study", wanted)
    elif other := difference(found, wanted) or difference(wanted, found):
        raise ConfigError(
            f"name: the study {name!r} in {where} is another one: {other}; take another name"
        )
    return study
