"""What a study found: a table, Optuna's plots, and the best configuration ready to train."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import yaml
from optuna.importance import PedAnovaImportanceEvaluator
from optuna.trial import FrozenTrial, TrialState

from resgym.tables import text_table
from sb3_ext.checkpoints.durable_files import write_text_durably
from sb3_ext.config.checks import one_line
from sb3_ext.tuning.storage import HEARTBEAT
from sb3_ext.tuning.study_file import StudyConfig
from sb3_ext.tuning.worker import ERROR, counts

_SHOWN = {TrialState.COMPLETE: "finished", TrialState.FAIL: "failed", TrialState.PRUNED: "pruned"}


def table(study: optuna.Study) -> str:
    """The trials that count, the best first, those that have no result last."""
    sign = -1 if study.direction is optuna.study.StudyDirection.MAXIMIZE else 1

    def order(trial: FrozenTrial) -> tuple[Any, ...]:
        finished = trial.state is TrialState.COMPLETE
        return (not finished, sign * (trial.value or 0.0) if finished else 0, trial.number)

    trials = sorted(filter(counts, study.get_trials(deepcopy=False)), key=order)
    names = list(dict.fromkeys(name for trial in trials for name in trial.params))
    rows = [["trial", "state", "value", "step", "seconds", *names]]
    for trial in trials:
        seconds = "" if trial.duration is None else f"{trial.duration.total_seconds():.1f}"
        value = "" if trial.value is None else f"{trial.value:.4f}"
        step = str(trial.last_step or "")
        state = _SHOWN.get(trial.state, trial.state.name.lower())
        given = [_shown(trial.params.get(name, "")) for name in names]
        rows.append([str(trial.number), state, value, step, seconds, *given])
    failed = [t for t in trials if ERROR in t.user_attrs and t.state is TrialState.FAIL]
    return "\n".join(
        [text_table(rows), *(f"trial {t.number}: {t.user_attrs[ERROR]}" for t in failed)]
    )


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def write(
    study: optuna.Study, config: StudyConfig, folder: Path, say: Callable[[str], None]
) -> Path | None:
    """Writes trials.csv, best.yml and the plots; returns the path of best.yml, if there is one."""
    folder.mkdir(parents=True, exist_ok=True)
    frame = study.trials_dataframe().drop(columns=f"user_attrs_{HEARTBEAT}", errors="ignore")
    write_text_durably(folder / "trials.csv", frame.to_csv(index=False))
    if not any(trial.state is TrialState.COMPLETE for trial in study.get_trials(deepcopy=False)):
        return None
    best, path = study.best_trial, folder / "best.yml"
    values = config.target.file(config.suggest(best))
    heading = (
        f"# Trial {best.number} of the study {study.study_name}, with the value {best.value:.6g}.\n"
        f"# {config.target.command_line(path)}\n"
    )
    write_text_durably(path, heading + yaml.safe_dump(values, sort_keys=False))
    _plot(study, folder, say)
    return path


def _plot(study: optuna.Study, folder: Path, say: Callable[[str], None]) -> None:
    try:
        import matplotlib
    except ImportError:
        say("no plots: they need matplotlib, pip install 'resgym[plots]'")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot
    from optuna.visualization import matplotlib as plots

    drawn: dict[str, Callable[[], Any]] = {
        "history": lambda: plots.plot_optimization_history(study),
        "importances": lambda: plots.plot_param_importances(
            study, evaluator=PedAnovaImportanceEvaluator()
        ),
        "intermediate": lambda: plots.plot_intermediate_values(study),
        "slices": lambda: plots.plot_slice(study),
    }
    for name, draw in drawn.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # experimental, too few trials, equal limits
            try:
                draw()
            except (RuntimeError, ValueError) as error:  # too few trials, or all of them equal
                say(f"no plot of {name}: {one_line(error)}")
            else:
                matplotlib.pyplot.savefig(folder / f"{name}.png", bbox_inches="tight")
        matplotlib.pyplot.close("all")
