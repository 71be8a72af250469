"""The whole way of a model as one public check: make, learn, save, load, predict.

    from sb3_ext.testing import smoke_pipeline
    print(smoke_pipeline("resgym/HironakaHost-v0", algo="ddqn"))

It takes seconds and says that the parts fit together, not that anything was learned.
"""

from __future__ import annotations

import inspect
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv

import resgym  # noqa: F401  # registers the environments
from sb3_ext.adapter import TensorVecEnv
from sb3_ext.adapter.sb3_private import num_updates
from sb3_ext.config.checks import check_count
from sb3_ext.ddqn.algorithms import ALGORITHMS
from sb3_ext.ddqn.legality import environment_masks, mask_key

__all__ = ["STAGES", "SmokeError", "SmokeReport", "smoke_pipeline"]

STAGES = ("environment", "model", "learn", "update", "save", "load", "predict", "legal")
"""What is done, in order; an error names one of them."""

# A few updates of a small model; hyperparameters that are given replace them.
_OFF_POLICY = {"buffer_size": 2_000, "batch_size": 32, "learning_starts": 64, "train_freq": 1}
_ON_POLICY = {"n_steps": 16, "batch_size": 64, "n_epochs": 2}

_FRESH_STEPS = 8


class SmokeError(AssertionError):
    """A stage of the pipeline failed; ``stage`` says which one, of `STAGES`."""

    def __init__(self, stage: str, subject: str, reason: str) -> None:
        super().__init__(f"stage {stage}, {subject}: {' '.join(reason.split())}")
        self.stage = stage


@dataclass(frozen=True)
class SmokeReport:
    """What was done and how long it took.

    Attributes:
        env_id: The environment.
        algorithm: Class of the model.
        stages: Seconds of every stage, in order.
        transitions: How many were collected.
        updates: What the model counts as updates.
        observations: How many fresh ones were predicted on.
        legal_checked: Whether predictions were compared with a mask; False where neither the
            environment nor its observation has one, or where `predict` of the algorithm does not
            know of masks (DQN, QRDQN, PPO, A2C).
    """

    env_id: str
    algorithm: str
    stages: Mapping[str, float]
    transitions: int
    updates: int
    observations: int
    legal_checked: bool

    @property
    def seconds(self) -> float:
        """Of all stages together."""
        return sum(self.stages.values())

    def __str__(self) -> str:
        legal = "legal" if self.legal_checked else "not compared with a mask"
        return (
            f"{self.algorithm} on {self.env_id}: {self.transitions} transitions, {self.updates}"
            f" updates, {self.observations} predictions {legal}, {self.seconds:.1f} s"
        )


def smoke_pipeline(
    env_id: str | Callable[[], VecEnv],
    algo: str | type[BaseAlgorithm] = "ddqn",
    *,
    env_kwargs: Mapping[str, Any] | None = None,
    n_envs: int = 8,
    n_timesteps: int = 384,
    **hyperparams: Any,
) -> SmokeReport:
    """Take a model the whole way at a small size, and check what every stage must keep.

    After learning at least one parameter has changed and all are finite numbers; the loaded model
    has the weights of the saved one bit for bit and predicts the same on fresh observations; no
    prediction, with or without exploration, is illegal.

    Args:
        env_id: Id of an environment, or a function that makes a `VecEnv`. With an id a batched
            environment of tensors is made where there is one, `DummyVecEnv` otherwise.
        algo: `ddqn`, `dqn`, `qrdqn`, `ppo`, `ppo_mask`, `a2c`, or a class.
        env_kwargs: Keyword arguments of the environment. Algorithms without masks play the
            environments of this package with `invalid_action="noop"` unless told otherwise.
        n_envs: Rows, with an id.
        n_timesteps: Transitions to learn from.
        **hyperparams: Arguments of the algorithm, `policy` among them.

    Returns:
        The stages with their seconds.

    Raises:
        SmokeError: A stage failed; one line that names it.
        ValueError, TypeError: An argument of this function is wrong.
    """
    algorithm = ALGORITHMS.resolve(algo) if isinstance(algo, str) else algo
    if not (isinstance(algorithm, type) and issubclass(algorithm, BaseAlgorithm)):
        raise TypeError(f"algo: got {algo!r}, need a name or a class of stable-baselines3")
    check_count("n_envs", n_envs)
    check_count("n_timesteps", n_timesteps)
    subject = env_id if isinstance(env_id, str) else getattr(env_id, "__name__", "VecEnv")
    masks = "action_masks" in inspect.signature(algorithm.predict).parameters
    seconds: dict[str, float] = {}

    @contextmanager
    def stage(name: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        except Exception as error:
            kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
            where = f"{algorithm.__name__} on {subject}"
            raise SmokeError(name, where, f"{kind}{error}") from error
        seconds[name] = time.perf_counter() - started

    def make() -> Any:
        if isinstance(env_id, str):
            return _make_env(env_id, n_envs, dict(env_kwargs or {}), masks)
        return env_id()

    with tempfile.TemporaryDirectory() as folder, ExitStack() as held:
        with stage("environment"):
            env, fresh_env = (held.enter_context(closing(make())) for _ in range(2))
        with stage("model"):
            construct: Any = algorithm
            model = construct(env=env, **_arguments(algorithm, env, hyperparams))
            before = _parameters(model)
        with stage("learn"):
            model.learn(n_timesteps)
        with stage("update"):
            _check_update(before, _parameters(model))
        with stage("save"):
            path = Path(folder, "model.zip")
            model.save(path)
            _require(path.is_file(), f"save() wrote no file {path.name}")
        with stage("load"):
            loaded = algorithm.load(path, device=model.device)
            _check_same_weights(model, loaded)
        with stage("predict"):
            fresh = list(_fresh_observations(fresh_env))
            for observation, legal in fresh:
                options: dict[str, Any] = {"action_masks": legal} if masks else {}
                first, second = (
                    np.asarray(each.predict(observation, deterministic=True, **options)[0])
                    for each in (model, loaded)
                )
                _require(
                    (first == second).all(),
                    f"the loaded model predicts other actions in {int((first != second).sum())}"
                    f" of {len(first)} rows",
                )
        checked = masks and fresh[0][1] is not None
        with stage("legal"):
            for observation, legal in fresh if checked else ():
                for deterministic in (True, False):
                    _check_legal(loaded, observation, legal, deterministic)
    return SmokeReport(
        env_id=subject,
        algorithm=algorithm.__name__,
        stages=seconds,
        transitions=int(model.num_timesteps),
        updates=num_updates(model),
        observations=len(fresh) * fresh_env.num_envs,
        legal_checked=checked,
    )


def _make_env(env_id: str, n_envs: int, kwargs: dict[str, Any], masks: bool) -> VecEnv:
    ours = env_id.split(":")[-1].startswith("resgym/")
    if ours and not masks:
        kwargs.setdefault("invalid_action", "noop")
    if ours or "output" in kwargs:
        return TensorVecEnv(gymnasium.make_vec(env_id, num_envs=n_envs, **kwargs))
    make: Any = partial(make_vec_env, env_id, n_envs, env_kwargs=kwargs)
    try:
        return make(vec_env_cls=TensorVecEnv)
    except ValueError:  # no batched environment, or one that does not return tensors
        return make()


def _arguments(
    algorithm: type[BaseAlgorithm], env: VecEnv, hyperparams: Mapping[str, Any]
) -> dict[str, Any]:
    """Small settings as far as the algorithm has them, under those that were given."""
    small = _OFF_POLICY if issubclass(algorithm, OffPolicyAlgorithm) else _ON_POLICY
    classes: tuple[Any, ...] = algorithm.__mro__
    known = {name for each in classes for name in inspect.signature(each.__init__).parameters}
    is_dict = isinstance(env.observation_space, spaces.Dict)
    return {
        "policy": "MultiInputPolicy" if is_dict else "MlpPolicy",
        "policy_kwargs": {"net_arch": [32]},
        "seed": 0,
        "device": "cpu",
        **{name: value for name, value in small.items() if name in known},
        **hyperparams,
    }


def _require(condition: object, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def _parameters(model: BaseAlgorithm) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in model.policy.named_parameters()}


def _check_update(before: Mapping[str, torch.Tensor], after: Mapping[str, torch.Tensor]) -> None:
    for name, value in after.items():
        _require(value.isfinite().all(), f"parameter {name} is NaN or infinite after learning")
    changed = any(not torch.equal(before[name], value) for name, value in after.items())
    _require(changed, f"learning changed none of the {len(after)} parameters")


def _check_same_weights(model: BaseAlgorithm, loaded: BaseAlgorithm) -> None:
    saved, found = model.policy.state_dict(), loaded.policy.state_dict()
    missing = sorted(saved.keys() ^ found.keys())
    _require(not missing, f"the loaded model has other weights: {', '.join(missing)}")
    for name, value in saved.items():
        same = torch.equal(value, found[name].to(value.device))
        _require(same, f"weights {name} are not those that were saved")


def _fresh_observations(env: VecEnv) -> Iterator[tuple[Any, np.ndarray | None]]:
    """Observations of a few steps of random legal play, and the legal actions `[N, A]` or None."""
    rng = np.random.default_rng(12_345)
    env.seed(12_345)
    env.action_space.seed(12_345)
    observation: Any = env.reset()
    key = mask_key(env.observation_space, env.action_space)
    for _ in range(_FRESH_STEPS):
        legal = None
        if key is not None:
            legal = np.asarray(observation[key], dtype=bool)
        elif env.has_attr("action_masks"):
            legal = np.asarray(environment_masks(env), dtype=bool)
        yield observation, legal
        if legal is None:
            actions = np.stack([env.action_space.sample() for _ in range(env.num_envs)])
        else:
            actions = np.where(legal, rng.random(legal.shape), -1.0).argmax(axis=1)
        observation = env.step(actions)[0]


def _check_legal(model: Any, observation: Any, legal: Any, deterministic: bool) -> None:
    actions = model.predict(observation, deterministic=deterministic, action_masks=legal)[0]
    wrong = np.flatnonzero(~legal[np.arange(len(legal)), actions])
    how = "without" if deterministic else "with"
    first = [(int(actions[row]), np.flatnonzero(legal[row]).tolist()) for row in wrong[:1]]
    _require(
        not first,
        f"predicted {len(wrong)} illegal actions in {len(legal)} rows {how} exploration, the first "
        f"one and those that are legal: {first}",
    )
