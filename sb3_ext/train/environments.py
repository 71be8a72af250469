"""The environments of a run, with the wrappers and statistics that its configuration names."""

from __future__ import annotations

import shutil
import uuid
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import gymnasium
from rl_zoo3.utils import get_wrapper_class
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    SubprocVecEnv,
    VecEnv,
    VecFrameStack,
    VecNormalize,
)

import resgym  # noqa: F401  registers the environments
from resgym.trust import check_pickle
from sb3_ext.adapter.tensor_vec_env import TensorVecEnv
from sb3_ext.config.checks import one_line
from sb3_ext.config.effects import confine_paths
from sb3_ext.runs.checkpoint import list_checkpoints
from sb3_ext.train.config_files import TrainConfig
from sb3_ext.types import Arguments

STATISTICS = "vecnormalize.pkl"
"""The file of `VecNormalize` in the folder of a run."""


def make_envs(
    config: TrainConfig,
    rows: int,
    seed: int,
    env_kwargs: Arguments | None = None,
    *,
    folder: Path | None = None,
    training: bool = True,
    statistics: Path | None = None,
) -> VecEnv:
    """This many environments of a run.

    Args:
        config: the configuration of the run.
        rows: how many.
        seed: seed of the first row; the others follow.
        env_kwargs: arguments of the environment; None: those of the run.
        folder: folder of the run, for its monitor files, which continue where there are
            checkpoints, and what wrappers write; None: no monitor files, and what wrappers write is
            deleted with the environments.
        training: statistics follow what is played, and rewards are normalised.
        statistics: a file of them, if they are not to begin anew.
    """
    values = config.hyperparameters
    place = folder or Path(gettempdir(), uuid.uuid4().hex)
    wrappers = confine_paths(
        {key: values.get(key) for key in ("env_wrapper", "vec_env_wrapper")}, place
    )
    monitor = {
        name: tuple(each) if isinstance(each, list) else each  # SB3 takes no list
        for name, each in values.get("monitor_kwargs", {}).items()
    }
    if list_checkpoints(place / "checkpoints"):
        monitor["override_existing"] = False
    env: VecEnv = make_vec_env(
        gymnasium.spec(config.env).make,  # type: ignore[arg-type]
        rows,
        seed,
        env_kwargs=dict(values.get("env_kwargs", {}) if env_kwargs is None else env_kwargs),
        monitor_dir=None if folder is None else str(folder),
        wrapper_class=get_wrapper_class(wrappers),
        vec_env_cls=partial(_batched, config),  # type: ignore[arg-type]
        monitor_kwargs=monitor,
    )
    if folder is None:
        weakref.finalize(env, shutil.rmtree, place, ignore_errors=True)
    if wrap := get_wrapper_class(wrappers, "vec_env_wrapper"):
        env = wrap(env)  # type: ignore[assignment, arg-type]
    if normalize := values.get("normalize"):
        if statistics is None:
            own = normalize if isinstance(normalize, dict) else {}
            env = VecNormalize(env, **{"gamma": values.get("gamma", 0.99), **own})
        else:
            check_pickle(statistics)
            env = VecNormalize.load(str(statistics), env)
        if not training:
            env.training = env.norm_reward = False
    return VecFrameStack(env, values["frame_stack"]) if values.get("frame_stack") else env


def _batched(config: TrainConfig, env_fns: Sequence[Callable[[], Any]], **more: Any) -> VecEnv:
    """One environment of tensors in place of many single ones, where it can be had."""
    try:
        return TensorVecEnv(env_fns)
    except (TypeError, ValueError) as error:
        single = {"dummy": DummyVecEnv, "subproc": SubprocVecEnv}[config.vec_env]
        env: VecEnv = single(env_fns, **more)  # what is wrong with its arguments is told here
        if config.verbose > 0:
            print(f"Using {single.__name__}: {one_line(error)}")
        return env


def evaluation_seed(seed: int) -> int:
    """The seed of evaluation games: no row of them has the seed of a row of the training.

    Rows have seeds in sequence, and no run has 2^31 of them.
    """
    return seed ^ 2**31
