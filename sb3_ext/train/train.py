"""``python -m sb3_ext.train``: one player, by the files and options of rl_zoo3 (2.9.2).

Its hyperparameter search and its tracking are not here: examples/rl_zoo3_search.py runs rl_zoo3
itself with our algorithms.
"""

from __future__ import annotations

import argparse
import glob
import sys
import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rl_zoo3.utils import get_latest_run_id
from stable_baselines3.common.callbacks import BaseCallback, CheckpointCallback
from stable_baselines3.common.utils import set_random_seed

from resgym.trust import check_pickle, import_modules
from sb3_ext.adapter.seam import num_updates, tell_buffer
from sb3_ext.callbacks.base import as_tensor, stop_training
from sb3_ext.callbacks.evaluation import Evaluation
from sb3_ext.callbacks.stopping import ByConditions
from sb3_ext.checkpoints.models import save_model
from sb3_ext.checkpoints.resume import init_from, load_run_state, run_state
from sb3_ext.cluster import RayCollector
from sb3_ext.config.checks import ConfigError, errors_named, errors_of, one_line
from sb3_ext.config.effects import confine_paths
from sb3_ext.config.sections import (
    Count,
    CountOrMinusOne,
    Section,
    add_fields,
    fields_of,
    find_config,
    read_as,
)
from sb3_ext.ddqn import DDQN
from sb3_ext.ddqn.algorithms import ALGORITHMS, family
from sb3_ext.runs.command import numerics, torch_threads
from sb3_ext.runs.driver import Job, Pulse, Run, Used, drive
from sb3_ext.runs.files import RunFolder
from sb3_ext.runs.stopping import RULES
from sb3_ext.train.config_files import (
    TrainConfig,
    ZooKeys,
    check_hyperparameters,
    make_callbacks,
    saved_config,
    section_of,
    with_classes,
)
from sb3_ext.train.environments import STATISTICS, evaluation_seed, make_envs
from sb3_ext.train.quickstart import win
from sb3_ext.types import Arguments, Metrics, StateDict

ELSEWHERE = """
--max-total-trials --n-evaluations --n-jobs --n-startup-trials --n-trials --no-optim-plots
--optimization-log-path --optimize-hyperparameters --pruner --sampler --storage --study-name --track
--trial-id --truncate-last-trajectory --wandb-entity --wandb-group --wandb-project-name --wandb-tags
-optimize -tags
"""
"""Options of rl_zoo3 that are not here."""

NOT_RESUMING = ("init_from", "log_folder", "starts", "trained_agent", "uuid")
"""What a resumed run has already."""

OF_DDQN = ("checkpoint_updates", "init_from", "resume")
"""Options that need an algorithm whose runs can be resumed."""


class Options(Section):
    """Options that are for one command; the text below a field is its help."""

    n_timesteps: CountOrMinusOne = -1
    """transitions in place of those of the file, -1 for those"""
    hyperparams: Arguments = {}  # noqa: RUF012
    """hyperparameters in place of those of the file, as key:value"""
    env_kwargs: Arguments = {}  # noqa: RUF012
    """arguments of the environment in place of those of the file, as key:value"""
    log_folder: str = ""
    """logs of all runs (default logs); a run is in ALGO/ENV_NUMBER there"""
    uuid: bool = False
    """add a unique text to the name of the folder"""
    gym_packages: list[str] = []  # noqa: RUF012
    """modules that register environments"""
    progress: bool = False
    """show a bar of progress"""
    trained_agent: str = ""
    """begin with the networks and the optimiser of this .zip; needs --trust"""
    init_from: str = ""
    """ddqn: start with the networks of another run: its folder or a checkpoint"""
    actors: Count | None = None
    """ddqn: collect with this many actor processes (docs/cluster.md)"""


SHORT = {
    "hyperparams": "-params",
    "log_folder": "-f",
    "n_timesteps": "-n",
    "progress": "-P",
    "tensorboard_log": "-tb",
    "trained_agent": "-i",
    "uuid": "-uuid",
}


def _options(given: argparse.Namespace) -> Options:
    return read_as(Options, fields_of(given, Options))


class Train(Job[TrainConfig]):
    """One model in one environment."""

    name = "train"
    about = "Train one player, with the options of rl_zoo3."
    Config = TrainConfig
    file = ("-conf --conf-file", None)
    rules = RULES
    shared = ("--starts", "--stop")
    metrics = None
    resumes = True
    may_change = frozenset({*TrainConfig.model_fields, "hyperparameters.n_timesteps"}) - {
        "algo",
        "env",
        "hyperparameters",
        "seed",
    }

    def __init__(self, config: TrainConfig, run: Run) -> None:
        super().__init__(config, run)
        self.given = _options(run.given)
        self.algorithm: Any = ALGORITHMS.resolve(config.algo)
        self.ours = issubclass(self.algorithm, DDQN)
        self.episodes = 0
        self.every = config.checkpoint_updates
        if not self.ours and any(map(vars(run.given).get, OF_DDQN)):
            raise ConfigError(
                f"resume, init-from and checkpoint-updates work with ddqn, got {config.algo}; "
                "rl_zoo3's own -i and --save-freq serve others"
            )
        folder = None if run.given.dry_run else run.folder
        set_random_seed(config.seed)
        try:
            self.model = self._make_model(folder)
            self.callbacks = self._make_callbacks(folder or Path())
            self.collector = self._make_collector()
        except ConfigError:
            raise
        except Exception as error:  # whatever an environment or an algorithm may raise
            raise ConfigError(
                f"{config.algo} on {config.env}: {type(error).__name__}: {one_line(error)}"
            ) from error

    def _make_model(self, folder: Path | None) -> Any:
        config = self.config
        values = config.hyperparameters
        agent = self.given.trained_agent
        statistics = Path(agent).parent / STATISTICS
        env = make_envs(
            config,
            values.get("n_envs", 1),
            config.seed,
            folder=folder,
            statistics=statistics if agent and statistics.exists() else None,
        )
        arguments = with_classes(values, self.algorithm, env) | {
            "device": config.device,
            "seed": config.seed,
            "verbose": config.verbose,
        }
        if config.tensorboard_log:
            arguments["tensorboard_log"] = f"{config.tensorboard_log}/{config.stem}"
        model = self.algorithm(**arguments)
        if agent:
            check_pickle(agent)
            with errors_named("trained-agent: give the policy_kwargs that it was trained with"):
                model.set_parameters(agent, device=model.device)
            if (buffer := Path(agent).parent / "replay_buffer.pkl").exists():
                model.load_replay_buffer(buffer)
        if self.given.init_from:
            self.run_of.say(f"networks of {init_from(model, self.given.init_from)}")
        if config.save_replay_buffer and not hasattr(model, "save_replay_buffer"):
            raise ConfigError(f"save-replay-buffer: {config.algo} has no replay buffer")
        if self.ours and config.log_interval < -1:
            model.log_interval_seconds = model.log_interval_updates = None
        if folder is not None:
            tell_buffer(model, "allocate")
        return model

    def _make_callbacks(self, folder: Path) -> list[BaseCallback]:
        config = self.config
        rows = self.model.n_envs
        callbacks = make_callbacks(confine_paths(config.hyperparameters.get("callback"), folder))
        if config.save_freq > 0:
            every = max(config.save_freq // rows, 1)
            callbacks.append(CheckpointCallback(every, str(folder), "rl_model", verbose=1))
        if config.eval_freq > 0:
            games = make_envs(
                config,
                config.n_eval_envs,
                evaluation_seed(config.seed),
                config.eval_env_kwargs,
                training=False,
            )
            callbacks.append(
                Evaluation(
                    games,
                    folder,
                    eval_freq=max(config.eval_freq // rows, 1),
                    n_eval_episodes=config.eval_episodes,
                )
            )
        return callbacks

    def _make_collector(self) -> RayCollector | None:
        values = self.config.hyperparameters
        if (settings := values.get("collector")) is None:
            return None
        if not self.ours:
            raise ConfigError(f"collector: works with ddqn, got {self.config.algo}")
        settings = {"env_kwargs": values.get("env_kwargs", {}), **settings}
        return RayCollector(self.config.env, **settings)

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        """Those of rl_zoo3, and of this project."""
        add_fields(parser, TrainConfig, SHORT)
        add_fields(parser, Options, SHORT)
        parser.add_argument(
            *ELSEWHERE.split(), action=_Elsewhere, nargs="*", help=argparse.SUPPRESS
        )

    @classmethod
    def read(cls, given: argparse.Namespace) -> TrainConfig:
        """The options, and the section of the environment, or ``default``."""
        own, options = fields_of(given, TrainConfig), _options(given)
        with errors_of("gym-packages"):
            import_modules(options.gym_packages)
        agent = Path(options.trained_agent)
        if options.trained_agent and not (agent.suffix == ".zip" and agent.is_file()):
            raise ConfigError(f"trained-agent: got {str(agent)!r}; expected a .zip file")
        if given.resume is None:
            config = TrainConfig.read({**own, "hyperparameters": {}})
            if given.config is None:
                name = family(ALGORITHMS.resolve(config.algo)) or config.algo
                file = find_config(f"{name}.yml", field="algo", shipped=True)
            else:
                file = find_config(given.config, field="conf-file")
            where, section = section_of(file, config.env)
        else:
            for name in NOT_RESUMING:
                if vars(given).get(name):
                    raise ConfigError(
                        f"{name.replace('_', '-')}: a resumed run keeps its own; leave it out"
                    )
            config = TrainConfig.read({**saved_config(given.resume).to_dict(), **own})
            where, section = f"{given.resume}/config.yml", config.hyperparameters
        seed = config.seed if config.seed >= 0 else int(np.random.default_rng().integers(2**32))
        section = {
            key: value
            for key, value in {**section, **options.hyperparams}.items()
            if value is not None or key not in ZooKeys.model_fields  # as in rl_zoo3: left out
        }
        if options.hyperparams:
            where += " with -params"
        if options.n_timesteps != -1:
            section["n_timesteps"] = options.n_timesteps
        if options.actors is not None:
            section.setdefault("collector", {})["actors"] = options.actors
        if options.env_kwargs:  # as in rl_zoo3: not merged
            section["env_kwargs"] = options.env_kwargs
        if given.starts is not None:
            section.setdefault("env_kwargs", {})["starts"] = given.starts
        check_hyperparameters(section, ALGORITHMS.resolve(config.algo), where)
        return config.model_copy(update={"hyperparameters": section, "seed": seed})

    @classmethod
    def shows_progress(cls, given: argparse.Namespace, config: TrainConfig) -> bool:
        """As ``--verbose`` says."""
        return config.verbose > 0

    @classmethod
    def place(cls, given: argparse.Namespace, config: TrainConfig) -> Path:
        """A new folder below those of the algorithm, with a number, as rl_zoo3 has it."""
        options = _options(given)
        runs, stem = Path(options.log_folder or "logs", config.algo), config.stem
        number = get_latest_run_id(glob.escape(str(runs)), stem) + 1
        unique = f"_{uuid.uuid4()}" if options.uuid else ""
        return runs / f"{stem}_{number}{unique}"

    @property
    def used(self) -> Used:
        """Checkpoints count updates."""
        return Used(num_updates(self.model), self.model.num_timesteps, episodes=self.episodes)

    @property
    def state(self) -> StateDict | None:
        """See `run_state`; None without checkpoints."""
        return run_state(self.model, self.callbacks) if self.ours and self.every else None

    @state.setter
    def state(self, parts: StateDict) -> None:
        load_run_state(self.model, parts, self.callbacks)
        for each in self.callbacks:  # SB3's own act at multiples of their calls
            each.n_calls = self.model.num_timesteps // self.model.n_envs

    def run(self, pulse: Pulse) -> None:
        """Train for the transitions that remain."""
        config = self.config
        model = self.model
        resumed = self.run_of.given.resume
        remaining = config.hyperparameters["n_timesteps"] - model.num_timesteps
        if remaining <= 0:
            print(f"{resumed} is finished; -n takes a greater number of transitions")
            return
        # Only ours learn with a collector; without an interval each algorithm has its own default.
        options: dict[str, Any] = {} if self.collector is None else {"collector": self.collector}
        if config.log_interval != -1:
            options["log_interval"] = config.log_interval if config.log_interval >= 0 else None
        with numerics(config), torch_threads(max(config.num_threads, 0) or None):
            model.learn(
                remaining,
                [*self.callbacks, _PulseCallback(pulse, self)],
                progress_bar=self.given.progress,
                reset_num_timesteps=resumed is None,
                **options,
            )
        pulse(self.used)

    def report(self) -> str:
        """Writes the model as SB3 saves it."""
        folder = self.run_of.folder
        model = self.model
        assert folder is not None
        save_model(folder / f"{self.config.stem}.zip", model)
        if self.config.save_replay_buffer:
            model.save_replay_buffer(folder / "replay_buffer.pkl")
        if statistics := model.get_vec_normalize_env():
            statistics.save(folder / STATISTICS)
        model.env.close()
        return f"{model.num_timesteps} transitions; results are in {folder}"


class _PulseCallback(ByConditions):
    """The pulse of a run, which sees what conditions do; `metrics.jsonl` keeps what is logged."""

    def __init__(self, pulse: Pulse, job: Train) -> None:
        super().__init__()
        self._pulse = pulse
        self._job = job
        self._goes_on = True
        self._folder = RunFolder(job.run_of.folder or Path())
        self._counts_episodes = any("max_episodes" in rule for rule in job.run_of.given.stop)

    def observe(self, values: Mapping[str, Any], exact: bool = False) -> None:
        """See `ByConditions`."""
        if not self._pulse(self._job.used, exact=exact, **values):
            self._goes_on = stop_training(self.model)

    def _on_training_start(self) -> None:
        self._folder.keep_lines_until("metrics.jsonl", self.num_timesteps)
        super()._on_training_start()
        self.observe({})

    def _on_rollout_start(self) -> None:
        self.observe({}, exact=True)

    def _on_step(self) -> bool:
        if self._counts_episodes:
            self._job.episodes += int(as_tensor(self.locals, "dones").sum())
        super()._on_step()
        return self._goes_on

    def after_train(self) -> None:
        """Called by our algorithms after every block of updates."""
        self.observe({})

    def take(self, numbers: Metrics, step: int) -> None:
        """See `NumberWriter`."""
        self._folder.append("metrics.jsonl", {"step": step, **numbers})
        super().take(numbers, step)


class _Elsewhere(argparse.Action):
    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        parser.error(f"{option_string}: is not here; examples/rl_zoo3_search.py has it")


train = partial(drive, Train)


def main(arguments: Sequence[str] | None = None) -> int:
    """Trains; returns the exit code, see `drive`."""
    given = sys.argv[1:] if arguments is None else arguments
    return win(given[1:]) if given[:1] == ["win"] else train(given)
