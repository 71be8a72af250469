"""rl_zoo3's experiment (2.9.2) with our files, algorithms, environments and checkpoints.

Everything in a file that rl_zoo3 would evaluate, import or unpickle is resolved first.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import gymnasium
import rl_zoo3
import rl_zoo3.exp_manager
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

import resgym  # noqa: F401  registers the environments
from sb3_ext.adapter.seam import tell_buffer
from sb3_ext.adapter.tensor_vec_env import TensorVecEnv
from sb3_ext.callbacks import CALLBACKS, Checkpoints, Signals
from sb3_ext.callbacks.base import Every, NumberWriter
from sb3_ext.callbacks.evaluation import Evaluation
from sb3_ext.checkpoints.resume import init_from, resume
from sb3_ext.cluster import RayCollector
from sb3_ext.config.checks import REFUSALS, one_line
from sb3_ext.config.effects import placed
from sb3_ext.config.sections import find_config, read_mapping
from sb3_ext.ddqn import DDQN
from sb3_ext.ddqn.algorithms import family
from sb3_ext.ddqn.collector import Collector
from sb3_ext.runs.checkpoint import list_checkpoints
from sb3_ext.runs.files import FolderInUseError, RunFolder, provenance
from sb3_ext.schedules.schedules import of_progress, parse_schedule
from sb3_ext.train.config_files import (
    check_hyperparameters,
    named_with_arguments,
    section_of,
    with_classes,
)

SETTING_UP = (*REFUSALS, ImportError, OSError, gymnasium.error.Error)
"""What is raised while environment and model are built from a file."""

SCHEDULED = ("learning_rate", "clip_range", "clip_range_vf", "delta_std")


class RunLines(BaseCallback, NumberWriter):
    """Keeps what is logged in `metrics.jsonl`, a line each time, and resumes in `resumed.jsonl`.

    Args:
        run_dir: folder of the run.
        resumed: whether `learn` continues with a run. What was logged after its checkpoint is
            dropped, since it comes again.
    """

    def __init__(self, run_dir: Path, resumed: bool) -> None:
        super().__init__()
        self._folder, self._resumed = RunFolder(run_dir), resumed

    def _on_rollout_start(self) -> None:  # a run that is refused never comes to it
        formats = self.logger.output_formats
        if self in formats:
            return
        if self._resumed:
            origin = provenance(self.model.seed)
            self._folder.append("resumed.jsonl", {"step": self.num_timesteps, **origin})
            self._folder.keep_lines_until("metrics.jsonl", self.num_timesteps)
        formats.append(self)

    def _on_step(self) -> bool:
        return True

    def take(self, numbers: dict[str, float], step: int) -> None:
        """See `NumberWriter`."""
        self._folder.append("metrics.jsonl", {"step": step, **numbers})


class Manager(rl_zoo3.exp_manager.ExperimentManager):
    """One command of `train`, or what it has left.

    Args:
        watching: callbacks beside those of the file.
        held: what the run holds until the command ends, its folder above all.
        args: the command line.
        algo: name of the algorithm.
        *given: further arguments of rl_zoo3's class.
        uuid_str: what the folder's name ends with.
        **more: further arguments of rl_zoo3's class.
    """

    model: Any = None
    collector: Collector | None = None

    def __init__(
        self,
        watching: Sequence[BaseCallback],
        held: ExitStack,
        args: argparse.Namespace,
        algo: str,
        *given: Any,
        uuid_str: str = "",
        **more: Any,
    ) -> None:
        super().__init__(args, algo, *given, **more)
        self.watching, self.held, self.uuid = watching, held, uuid_str
        self.algorithm: type[Any] = rl_zoo3.ALGOS[algo]
        self.ours = issubclass(self.algorithm, DDQN)
        self.vec_env_class: Any = partial(self._batched, self.vec_env_class)
        if args.resume is not None:
            self.save_path = str(args.resume)
            self.config = f"{self.save_path}/{self.env_name}/config.yml"
        elif args.conf_file is None:
            name = family(self.algorithm) or self.algo
            self.config = str(find_config(f"{name}.yml", field="algo", shipped=True))

    def read_hyperparameters(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Reads and checks the section of the environment, or ``default``.

        Paths of wrappers and callbacks are put inside the run's folder.
        """
        path, args = Path(self.config), self.args
        if args.resume is not None:  # the file of a run is the section of its environment alone
            where, section = str(path), dict(read_mapping(path))
        else:
            where, section = section_of(path, self.env_name.gym_id)
        given = {**section, **(self.custom_hyperparams or {})}
        if args.actors is not None:
            given["collector"] = {**(given.get("collector") or {}), "actors": args.actors}
        env_kwargs = self.env_kwargs or given.get("env_kwargs", {})  # as in rl_zoo3: not merged
        if args.starts is not None:
            env_kwargs = {**env_kwargs, "starts": args.starts}
        if env_kwargs or "env_kwargs" in given:
            self.env_kwargs = given["env_kwargs"] = env_kwargs
        where = f"{where} with -params" if self.custom_hyperparams else where
        check_hyperparameters(given, self.algorithm, where)
        if self.trial_id is not None and self.storage and self.study_name:
            given |= self.load_trial(self.storage, self.study_name, self.trial_id)
        saved = dict(sorted(given.items()))
        if self.verbose > 0 and args.resume is None:
            print(f"{where}: {saved}")
        result, folder = with_classes(given, self.algorithm), Path(self.save_path)
        names = ("callback", "env_wrapper", "vec_env_wrapper")
        result |= placed({name: result[name] for name in names if name in result}, folder)
        callbacks = named_with_arguments(result.get("callback"))
        result["callback"] = [{_dotted(name): arguments} for name, arguments in callbacks]
        return result, saved

    def _preprocess_schedules(self, hyperparams: dict[str, Any]) -> dict[str, Any]:  # type: ignore[override]
        if self.ours:  # reads every form of a schedule itself
            return hyperparams
        for key in SCHEDULED:
            if isinstance(hyperparams.get(key, 0), (int, float)):
                continue
            schedule = parse_schedule(hyperparams[key], key)
            if schedule.unit != "progress":
                raise ValueError(
                    f"{self.config}: {key} of {self.algo} must be a schedule of the progress, "
                    f"got unit {schedule.unit!r}"
                )
            hyperparams[key] = of_progress(schedule)
        return hyperparams

    def _preprocess_hyperparams(self, hyperparams: dict[str, Any]) -> Any:
        collector = hyperparams.pop("collector", None)
        result = super()._preprocess_hyperparams(hyperparams)
        if collector is not None:
            if not self.ours:
                raise ValueError(f"collector: works with ddqn, got {self.algo}")
            arguments = {"env_kwargs": self.env_kwargs, **collector}
            self.collector = RayCollector(self.env_name.gym_id, **arguments)
        if self._eval_env_kwargs_args is None:
            # rl_zoo3 leaves the file's env_kwargs out of the evaluation environment.
            self.eval_env_kwargs = self.env_kwargs
        return result

    def setup_experiment(self) -> Any:
        """Builds environment and model."""
        if self.optimize_hyperparameters:  # leaves only its report
            self.save_path = self.held.enter_context(TemporaryDirectory())
        elif self.args.resume is None:
            self._reserve_folder()
        self.params_path = f"{self.save_path}/{self.env_name}"
        try:
            result = super().setup_experiment()
            if result is not None:
                self._attach(result[0])
        except SETTING_UP as error:
            if isinstance(error, (TypeError, ValueError)):
                raise
            raise ValueError(f"{self.config}: {type(error).__name__}: {error}") from error
        return result

    def _attach(self, model: Any) -> None:
        """Makes ready for `learn`."""
        args, self.model = self.args, model
        self.callbacks += self.watching
        if self.ours:
            self._attach_checkpoints(model)
        elif args.resume or args.init_from or args.checkpoint_updates:
            raise ValueError(
                "resume, init-from and checkpoint-updates work with ddqn, got "
                f"{type(model).__name__}; rl_zoo3's own -i and --save-freq serve others"
            )
        if args.save_replay_buffer and not hasattr(model, "save_replay_buffer"):
            raise ValueError(f"save-replay-buffer: {type(model).__name__} has no replay buffer")
        tell_buffer(model, "allocate")

    def _attach_checkpoints(self, model: DDQN) -> None:
        """Adds what writes them, and puts the one that was asked for into model and callbacks."""
        args, folder = self.args, Path(self.save_path)
        if self.log_interval < -1:
            model.log_interval_seconds = model.log_interval_updates = None
        self.callbacks.append(RunLines(folder, resumed=args.resume is not None))
        updates = 1000 if args.checkpoint_updates is None else args.checkpoint_updates
        if updates:
            every = Every(updates=updates)
            self.callbacks += [Signals(verbose=1), Checkpoints(folder, every)]
        if args.resume is not None and list_checkpoints(args.resume):
            path = resume(model, args.resume, CallbackList(self.callbacks))
            for each in self.callbacks:  # SB3's own act at multiples of their calls
                each.n_calls = model.num_timesteps // model.n_envs
            print(f"resuming from {path}, {model.num_timesteps} transitions")
        elif args.resume is not None:
            print(f"{args.resume} has no checkpoint yet: the run begins anew")
        elif args.init_from is not None:
            print(f"networks of {init_from(model, args.init_from)}")

    def create_log_folder(self) -> None:
        """As in rl_zoo3; a resumed run continues its monitor file."""
        if self.args.resume is not None and list_checkpoints(self.args.resume):
            self.monitor_kwargs = {**self.monitor_kwargs, "override_existing": False}
        super().create_log_folder()

    def _reserve_folder(self) -> None:
        """Keeps others out: two that start together would get the same number from rl_zoo3."""
        stem, _, number = self.save_path.rpartition("_")
        for free in itertools.count(int(number)):
            self.save_path = f"{stem}_{free}{self.uuid}"
            if not os.path.exists(self.save_path):
                with suppress(FolderInUseError):
                    folder = self.held.enter_context(RunFolder(self.save_path, "log-folder"))
                    self.held.push(partial(self._leave, folder))
                    return

    def _leave(self, folder: RunFolder, error: Any, *_: Any) -> None:
        """What is refused, or ends before anything was played, leaves nothing in its new folder."""
        if error is not None and not getattr(self.model, "num_timesteps", 0):
            folder.discard()

    def create_callbacks(self) -> None:
        """As in rl_zoo3, with our evaluation."""
        eval_freq, self.eval_freq = self.eval_freq, -1
        super().create_callbacks()
        if eval_freq > 0 and not self.optimize_hyperparameters:
            self.callbacks.append(
                Evaluation(
                    self.create_envs(self.n_eval_envs, eval_env=True),
                    Path(self.save_path),
                    n_eval_episodes=self.n_eval_episodes,
                    eval_freq=max(eval_freq // self.n_envs, 1),
                    deterministic=self.deterministic_eval,
                )
            )

    def create_envs(self, n_envs: int, eval_env: bool = False, no_log: bool = False) -> VecEnv:
        """As in rl_zoo3, but evaluations draw other starts than training."""
        seed = self.seed
        self.seed = evaluation_seed(seed) if eval_env else seed
        try:
            return super().create_envs(n_envs, eval_env, no_log)
        finally:
            self.seed = seed

    def _batched(self, single: Any, env_fns: Sequence[Callable[[], Any]], **more: Any) -> VecEnv:
        """One environment of tensors in place of many single ones, where it can be had."""
        try:
            return TensorVecEnv(env_fns)
        except (TypeError, ValueError) as error:
            if self.verbose > 0:
                print(f"Using {single.__name__}: {one_line(error)}")
            return single(env_fns, **more)  # type: ignore[no-any-return]

    def _maybe_normalize(self, env: VecEnv, eval_env: bool) -> VecEnv:
        if self.trained_agent:  # with --trust: its statistics are a pickle
            return super()._maybe_normalize(env, eval_env)
        off = {"norm_reward": False, "training": False} if eval_env else {}
        return VecNormalize(env, **{**self.normalize_kwargs, **off}) if self.normalize else env

    def learn(self, model: Any) -> None:
        """Trains, after a resume the part that is left."""
        more: dict[str, Any] = {} if self.collector is None else {"collector": self.collector}
        if self.args.resume is not None:
            # rl_zoo3 has no way to say that the counters continue.
            self.n_timesteps -= model.num_timesteps
            if self.n_timesteps <= 0:
                print(f"{self.save_path} is finished; -n takes a greater number of transitions")
                return
            more["reset_num_timesteps"] = False
        as_told: Any = SimpleNamespace(learn=partial(model.learn, **more), env=model.env)
        super().learn(as_told)

    def _save_config(self, saved_hyperparams: dict[str, Any]) -> None:
        """Writes config.yml, args.yml, command.txt and versions.yml as plain data (no `super`)."""
        if self.args.resume is None:
            about = provenance(self.seed)
            about |= about.pop("versions")
            folder = RunFolder(self.params_path)
            for name, content in (
                ("config", saved_hyperparams),
                ("args", vars(self.args)),
                ("versions", about),
            ):
                folder.write_yaml(f"{name}.yml", json.loads(json.dumps(content, default=str)))
            (folder.path / "command.txt").write_bytes(os.fsencode(shlex.join(sys.orig_argv)))
        print(f"Log path: {self.save_path}")


def evaluation_seed(seed: int) -> int:
    """The seed of evaluation games: no row of them has the seed of a row of the training.

    Rows have seeds in sequence, and no run has 2^31 of them.
    """
    return seed ^ 2**31


def _dotted(name: str) -> str:
    """The dotted name of a callback, which rl_zoo3 imports anew for every trial of a search."""
    kind = CALLBACKS.get(name)
    return name if kind is None else f"{kind.__module__}.{kind.__qualname__}"
