"""Our algorithms, environments and configuration files under rl_zoo3's own commands (2.9.2).

Algorithms are added to its tables (ALGOS, HYPERPARAMS_SAMPLER, HYPERPARAMS_CONVERTER). Its commands
take no manager of experiments, so `run_zoo` replaces these names while one of them runs:

    *.ExperimentManager       `Manager` below
    exp_manager.EvalCallback  `Evaluation`, which a resumed run goes on with
    ArgumentParser            errors in one line, arguments checked
    *.StoreDict               key:value pairs are read as YAML, not evaluated as code

`Manager` overrides methods of ExperimentManager, and its default_vec_env_cls: one batched
environment instead of many single ones.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import itertools
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, ClassVar
from unittest.mock import patch

import gymnasium
import rl_zoo3
import rl_zoo3.exp_manager
import rl_zoo3.train
import rl_zoo3.utils
import yaml
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.utils import ConstantSchedule
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

import resgym  # noqa: F401  registers the environments
from resgym.cli import OneLineParser
from resgym.trust import check_pickle, command_line
from sb3_ext.adapter.tensor_vec_env import TensorVecEnv
from sb3_ext.algorithms import family
from sb3_ext.callbacks.evaluation import Evaluation
from sb3_ext.checkpoints.checkpoint import list_checkpoints
from sb3_ext.cluster import RayCollector
from sb3_ext.config.arguments import REFUSALS
from sb3_ext.config.effects import placed
from sb3_ext.config.reading import find_config, read_mapping, shipped_configs
from sb3_ext.ddqn import DDQN
from sb3_ext.ddqn.collector import Collector
from sb3_ext.replay.buffers import reserve_memory
from sb3_ext.runs.folder import FolderInUseError, RunFolder
from sb3_ext.runs.provenance import provenance
from sb3_ext.schedules.binding import bind_schedules, of_progress
from sb3_ext.schedules.schedules import Schedule, parse_schedule
from sb3_ext.training.config_files import check_hyperparameters, read_sections, with_classes
from sb3_ext.training.runs import RunOptions
from sb3_ext.training.saved_run import STATISTICS, has_tensor_env, save_statistics
from sb3_ext.training.zoo_algorithms import check_algorithm
from sb3_ext.training.zoo_arguments import StoreYaml, parse_args

REFUSED = (AssertionError, FileNotFoundError, TypeError, ValueError)
"""What rl_zoo3, SB3 and this package raise for files and command lines that are not valid."""

SETTING_UP = (*REFUSALS, ImportError, OSError, gymnasium.error.Error)
"""What is raised while environment and model are built from a file."""

SCHEDULED = ("learning_rate", "clip_range", "clip_range_vf", "delta_std")


class Manager(rl_zoo3.exp_manager.ExperimentManager):
    """rl_zoo3's experiment with our configuration files, schedules and batched environments.

    Attributes:
        options: what to do about checkpoints.
        held: closed when the command ends.
        folder: of a new run; none else writes to it until the command ends.
        collector: what collects instead of the model, if the file or the options say so.
    """

    options: ClassVar[RunOptions] = RunOptions()
    held: ClassVar[ExitStack]
    default_vec_env_cls: type[VecEnv] | None = TensorVecEnv
    folder: RunFolder | None = None
    collector: Collector | None = None

    def __init__(self, args: argparse.Namespace, algo: str, env_id: str, *more: Any, **kwargs: Any):
        if kwargs.get("config") is None:
            name = family(rl_zoo3.ALGOS[algo]) or algo
            shipped = [each for each in shipped_configs() if "/" not in each]
            if name not in shipped:
                raise ValueError(
                    f"algo: must be one that has hyperparameters here, {', '.join(shipped)}, "
                    f"or come with a file of them (-conf FILE), got {algo}"
                )
            kwargs["config"] = str(find_config(f"{name}.yml", shipped=True))
        if not has_tensor_env(env_id):
            self.default_vec_env_cls = None
        super().__init__(args, algo, env_id, *more, **kwargs)
        self._schedules: dict[str, Schedule] = {}
        if self.options.resume is not None:
            self.save_path = str(self.options.resume)
            self.params_path = f"{self.save_path}/{self.env_name}"
            self.config = f"{self.params_path}/config.yml"

    def read_hyperparameters(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Reads and checks the section of the environment, or ``default``."""
        path = Path(self.config)
        if path.suffix not in (".yml", ".yaml"):
            raise ValueError(f"conf-file: must be a YAML file, got {self.config}")
        name = self.env_name.gym_id
        resumed = self.options.resume is not None
        # The file of a run is the section of its environment alone.
        sections = {name: dict(read_mapping(path))} if resumed else read_sections(path)
        section = name if name in sections else "default"
        if section not in sections:
            raise ValueError(f"{path}: no section {name!r} and no 'default'")
        if (actors := self.options.actors) is not None:
            more = self.custom_hyperparams or {}
            collector = {**sections[section], **more}.get("collector") or {}
            self.custom_hyperparams = {**more, "collector": {**collector, "actors": actors}}
        if (starts := self.options.starts) is not None:
            more = self.custom_hyperparams or {}
            own = self.env_kwargs or {**sections[section], **more}.get("env_kwargs", {})
            # As rl_zoo3's own option, which takes the place of the file's key.
            self.env_kwargs = {**own, "starts": starts}
            self.custom_hyperparams = {**more, "env_kwargs": self.env_kwargs}
        given = {**sections[section], **(self.custom_hyperparams or {})}
        check_hyperparameters(given, rl_zoo3.ALGOS[self.algo], f"{path}, {section}")
        for key in ("device", "seed", "tensorboard_log", "verbose"):
            if key in given:
                option = key.replace("_", "-")
                raise ValueError(f"{path}, {section}: {key} is given by the option --{option}")
        if self.trial_id and self.storage and self.study_name:
            given |= self.load_trial(self.storage, self.study_name, self.trial_id)
        if self.env_kwargs:  # the command line's win over the file's
            given["env_kwargs"] = self.env_kwargs
        saved = dict(sorted(given.items()))
        if self.verbose > 0 and not resumed:
            print(f"{path}, {section}: {saved}")
        return with_classes(given, rl_zoo3.ALGOS[self.algo]), saved

    def _preprocess_schedules(self, hyperparams: dict[str, Any]) -> dict[str, Any]:  # type: ignore[override]
        if issubclass(rl_zoo3.ALGOS[self.algo], DDQN):  # reads every form of a schedule itself
            return hyperparams
        off_policy = issubclass(rl_zoo3.ALGOS[self.algo], OffPolicyAlgorithm)
        for key in (*SCHEDULED, "exploration_rate"):
            if key not in hyperparams:
                continue
            value = hyperparams[key]
            if isinstance(value, (int, float)) and key != "exploration_rate":
                hyperparams[key] = value if value < 0 else ConstantSchedule(float(value))
                continue
            schedule = parse_schedule(value, key)
            if off_policy and key in ("learning_rate", "exploration_rate"):
                # Attached once there is a model to count by.
                self._schedules[key] = schedule
                del hyperparams[key]
            elif schedule.unit == "progress":
                hyperparams[key] = of_progress(schedule)
            else:
                raise ValueError(
                    f"{self.config}: {key} of {self.algo} must be a schedule of the progress, "
                    f"got unit {schedule.unit!r}"
                )
        return hyperparams

    def _preprocess_hyperparams(self, hyperparams: dict[str, Any]) -> Any:
        names = ("callback", "env_wrapper", "vec_env_wrapper")
        self._named = {key: hyperparams.pop(key) for key in names if key in hyperparams}
        collector = hyperparams.pop("collector", None)
        result = super()._preprocess_hyperparams(hyperparams)
        if collector is not None:
            if not issubclass(rl_zoo3.ALGOS[self.algo], DDQN):
                raise ValueError(f"collector: works with ddqn, got {self.algo}")
            arguments = {"env_kwargs": self.env_kwargs, **collector}
            self.collector = RayCollector(self.env_name.gym_id, **arguments)
        if self._eval_env_kwargs_args is None:
            # rl_zoo3 leaves the file's env_kwargs out of the evaluation environment.
            self.eval_env_kwargs = self.env_kwargs
        return result

    def _check_evaluations(self, model: Any) -> None:
        """Finds now what would end the run at its first evaluation."""
        legal_actions, env = getattr(model, "legal_actions", None), model.get_env()
        if self.eval_freq <= 0 or getattr(legal_actions, "source", "") != "environment":
            return
        if env.has_attr("invalid_action") and env.get_attr("invalid_action")[0] == "error":
            raise ValueError(
                f"eval-freq: must be -1 for {self.env_name.gym_id}, or its env_kwargs"
                " invalid_action another than 'error': only the environment knows its legal"
                " actions, and evaluations do not ask it"
            )

    def setup_experiment(self) -> Any:
        """Builds environment and model; a run that is refused leaves nothing in its folder."""
        if self.options.resume is not None and list_checkpoints(self.options.resume):
            self.monitor_kwargs = {**self.monitor_kwargs, "override_existing": False}
        try:
            result = super().setup_experiment()
            if result is not None:
                model: Any = result[0]
                self._check_evaluations(model)
                if self._schedules:
                    bind_schedules(model, **self._schedules)
                self.options.attach(model, self.callbacks, Path(self.save_path))
                reserve_memory(model)
        except BaseException as error:
            if self.folder is not None:
                self.folder.discard()
            if isinstance(error, (TypeError, ValueError)) or not isinstance(error, SETTING_UP):
                raise
            raise ValueError(f"{self.config}: {type(error).__name__}: {error}") from error
        return result

    def create_log_folder(self) -> None:
        """Makes the run's folder, and keeps others out of it.

        Two runs that are started together would get the same number from rl_zoo3.
        """
        if self.optimize_hyperparameters:  # leaves only its report
            self.save_path = self.held.enter_context(TemporaryDirectory())
        elif self.options.resume is None:
            stem = os.path.join(self.log_path, f"{self.env_name}_")
            number, *uuid = self.save_path[len(stem) :].split("_", 1)
            for free in itertools.count(int(number)):
                self.save_path = "_".join([f"{stem}{free}", *uuid])
                if not os.path.exists(self.save_path):
                    with suppress(FolderInUseError):
                        folder = RunFolder(self.save_path, "log-folder")
                        self.folder = self.held.enter_context(folder)
                        break
        self.params_path = f"{self.save_path}/{self.env_name}"
        super().create_log_folder()

    def build_named(self) -> None:
        """Builds the file's callbacks and wrappers, with paths inside the run's folder."""
        named = placed(self._named, Path(self.save_path))
        self.callbacks = rl_zoo3.utils.get_callback_list(named)
        self.specified_callbacks = named.get("callback", [])
        self.env_wrapper = rl_zoo3.utils.get_wrapper_class(named)
        self.vec_env_wrapper = rl_zoo3.utils.get_wrapper_class(named, "vec_env_wrapper")

    def create_callbacks(self) -> None:
        """Those of the file and of the command line."""
        self.build_named()
        super().create_callbacks()

    def save_trained_model(self, model: Any) -> None:
        """Writes the model, and what `SavedRun` needs beside it."""
        super().save_trained_model(model)
        if self.normalize:
            save_statistics(model.get_vec_normalize_env(), Path(self.params_path, STATISTICS))

    def _maybe_normalize(self, env: VecEnv, eval_env: bool) -> VecEnv:
        if self.trained_agent:  # with --trust: its statistics are a pickle
            return super()._maybe_normalize(env, eval_env)
        off = {"norm_reward": False, "training": False} if eval_env else {}
        return VecNormalize(env, **{**self.normalize_kwargs, **off}) if self.normalize else env

    def learn(self, model: Any) -> None:
        """Trains, after a resume the part that is left; a run that never began leaves nothing."""
        more: dict[str, Any] = {} if self.collector is None else {"collector": self.collector}
        if self.options.resume is not None:
            # rl_zoo3 has no way to say that the counters go on.
            self.n_timesteps = max(0, self.n_timesteps - model.num_timesteps)
            more["reset_num_timesteps"] = False
        as_told: Any = SimpleNamespace(learn=partial(model.learn, **more), env=model.env)
        try:
            super().learn(as_told)
        except BaseException:  # such as a cluster that is not there, before anything was played
            if self.folder is not None and not model.num_timesteps:
                self.folder.discard()
            raise

    def _save_config(self, saved_hyperparams: dict[str, Any]) -> None:
        """Writes config.yml, args.yml, command.txt and versions.yml as plain data (no `super`)."""
        if self.options.resume is not None:
            print(f"Log path: {self.save_path}")
            return
        self.args.checkpoint_updates = self.options.checkpoint_updates
        vars(self.args).update(self.options.switches)
        origin = provenance(self.seed)
        about = {"commit": origin["commit"], "seed": self.seed, **origin["versions"]}
        arguments = {key: _plain(value) for key, value in vars(self.args).items()}
        hyperparams = dict(saved_hyperparams)
        if "collector" in hyperparams:  # an address is for the command line alone
            collector = {k: v for k, v in hyperparams["collector"].items() if k != "address"}
            hyperparams["collector"] = collector
        files = {"config": hyperparams, "args": arguments, "versions": about}
        for name, content in files.items():
            Path(self.params_path, f"{name}.yml").write_text(yaml.safe_dump(content))
        Path(self.params_path, "command.txt").write_text(" ".join(sys.orig_argv))
        print(f"Log path: {self.save_path}")


def _plain(value: Any) -> Any:
    """An argument as YAML has it: names of environments are texts of a class of their own."""
    return str(value) if isinstance(value, str) else value


def _evaluation(env: VecEnv, log_path: str, best_model_save_path: str, **more: Any) -> Evaluation:
    return Evaluation(env, Path(log_path), **more)


def run_train(
    arguments: Sequence[str],
    options: RunOptions | None = None,
    trust: bool = False,
    manager: type[Manager] = Manager,
) -> int:
    """Runs rl_zoo3's ``train`` with our algorithms, environments and files.

    Args:
        arguments: its command line; without ``-f`` the folder is ``logs``.
        options: what to do about checkpoints; by default there are some.
        trust: whether the configuration, or the model of ``-i``, is trusted.
        manager: what sets up the experiment.

    Returns:
        The exit code, 0; what is not valid is one of `REFUSED`.
    """
    check_algorithm(arguments)
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-conf", "--conf-file")
    parser.add_argument("-i", "--trained-agent")
    named = parser.parse_known_args(arguments)[0]
    if "--track" in arguments:  # rl_zoo3 tracks runs with it; it is not among our requirements
        found = importlib.util.find_spec("wandb")
        if found is None or found.origin is None:  # its own folder of runs looks like a package
            raise ValueError("track: needs wandb, which is not installed: pip install wandb")
    with ExitStack() as held:
        manager = type("Manager", (manager,), {"options": options or RunOptions(), "held": held})
        held.enter_context(command_line(trust, named.conf_file))
        if named.trained_agent and os.path.isfile(named.trained_agent):
            check_pickle(named.trained_agent)
        for owner, name, value in (
            (argparse.ArgumentParser, "error", OneLineParser.error),
            (argparse.ArgumentParser, "parse_args", parse_args),
            (rl_zoo3.exp_manager, "EvalCallback", _evaluation),
            (rl_zoo3.train, "ExperimentManager", manager),
            (rl_zoo3.train, "StoreDict", StoreYaml),
            (sys, "argv", ["python -m sb3_ext.train", "-f", "logs", *arguments]),
        ):
            held.enter_context(patch.object(owner, name, value))
        try:
            rl_zoo3.train.train()
        except ImportError as error:
            raise ValueError(f"gym-packages: {error}") from error
    return 0
