"""Search the hyperparameters of a host and an agent that train together, with Optuna.

    python examples/tune_two_player.py --trials 20 --storage sqlite:///study.db

Start the same command in several terminals for several workers, and again after a kill: Optuna
keeps the study in the storage, and repeats the trial of a worker that died.
"""

import argparse
import sys
import warnings
from collections.abc import Sequence

import optuna
from optuna.storages import RDBStorage, RetryFailedTrialCallback
from optuna.study import MaxTrialsCallback
from optuna.trial import TrialState

from resgym.texts import one_line, printable
from sb3_ext.two_player import Evaluation, HostAgentTrainer, read_config

SEED = 0


def settings_of(trial: optuna.Trial | optuna.trial.FrozenTrial) -> list[str]:
    """The sampled changes of configs/two_player/small.yml, as `--set` takes them."""
    host = trial.suggest_float("host_rate", 1e-4, 1e-2, log=True)
    agent = trial.suggest_float("agent_rate", 1e-4, 1e-2, log=True)
    batch = trial.suggest_int("batch_size", 64, 512, step=64)
    return [
        f"roles.host.learning_rate.init={host:.8f}",
        f"roles.agent.learning_rate.init={agent:.8f}",
        f"roles.host.batch_size={batch}",
    ]


def worst_rho(evaluation: Evaluation) -> float:
    """The host's rho against the scripted opponent that it does worst against."""
    return evaluation.scores["host"]


def objective(trial: optuna.Trial, steps: int, interval: int, games: int) -> float:
    """Trains once; the pruner sees every evaluation."""
    # A sampler for each trial: a study that was killed continues with the values that it would
    # have drawn. Failed trials do not count, because their repetitions do.
    earlier = trial.study.get_trials(deepcopy=False)[: trial.number]
    number = sum(each.state is not TrialState.FAIL for each in earlier)
    trial.study.sampler = optuna.samplers.TPESampler(
        n_startup_trials=8, constant_liar=True, seed=SEED + number
    )
    changes = [*settings_of(trial), f"evaluation.games={games}"]
    trainer = HostAgentTrainer(read_config("small", changes))

    def is_promising(trainer: HostAgentTrainer) -> bool:
        if trainer.total_steps % interval:
            return True
        trial.report(worst_rho(trainer.history[-1]), trainer.total_steps)
        return not trial.should_prune()

    last = trainer.train(steps, interval, callback=is_promising)
    if trainer.total_steps < steps:
        raise optuna.TrialPruned
    return worst_rho(last)


def main(
    storage: str = "sqlite:///study.db",
    trials: int = 20,
    steps: int = 2_000,
    interval: int = 250,
    games: int = 1_000,
    heartbeat: int = 10,
    pruner: optuna.pruners.BasePruner | None = None,
) -> optuna.Study:
    """Works on the study until it has this many trials, those of other workers included."""
    counted = (TrialState.COMPLETE, TrialState.PRUNED)
    with warnings.catch_warnings(action="ignore"):  # Optuna calls heartbeats experimental
        # A worker that is silent for two heartbeats (in seconds) is dead.
        retry = RetryFailedTrialCallback(max_retry=3)
        try:
            kept = RDBStorage(storage, heartbeat_interval=heartbeat, failed_trial_callback=retry)
            study = optuna.create_study(
                study_name="two_player",
                storage=kept,
                load_if_exists=True,
                direction="maximize",
                pruner=pruner
                or optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=500),
            )
            done = len(study.get_trials(deepcopy=False, states=counted))
        except Exception as error:  # of Optuna, SQLAlchemy, or what a damaged study raises
            print(f"--storage: cannot be read: {one_line(error)}", file=sys.stderr)
            raise SystemExit(2) from None
    if done < trials:
        study.optimize(
            lambda trial: objective(trial, steps, interval, games),
            callbacks=[MaxTrialsCallback(trials, states=counted)],
            catch=(FloatingPointError,),  # a NaN fails the trial, not the study
        )
    table = study.trials_dataframe(("number", "state", "value", "params"))
    print(printable(table.sort_values("value", ascending=False).to_string(index=False), "\n"))
    changes = " ".join(f"--set {each}" for each in settings_of(study.best_trial))
    print(printable(f"train with the best: python -m sb3_ext.two_player --config small {changes}"))
    return study


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="search hyperparameters with Optuna")
    parser.add_argument("--storage", default="sqlite:///study.db", help="Optuna's storage")
    parser.add_argument("--trials", type=int, default=20, help="trials of all workers together")
    parser.add_argument("--steps", type=int, default=2_000, help="steps of a trial")
    given = parser.parse_args(arguments)
    if min(given.trials, given.steps) < 1:
        parser.error("--trials and --steps must be at least 1")
    return given


if __name__ == "__main__":
    main(**vars(parse()))
