"""The whole way of a model as one public check: make, learn, save, load, predict.

    from sb3_ext.testing import smoke_pipeline
    print(smoke_pipeline("resgym/HironakaHost-v0", algo="ddqn"))

It takes seconds and says that the parts fit together, not that anything was learned.
`resgym.testing.check_vector_env` is the counterpart for environments.
"""

from __future__ import annotations

import inspect
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
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
from stable_baselines3.common.vec_env import VecEnv

import resgym  # noqa: F401  # registers the environments
from sb3_ext.adapter import TensorVecEnv
from sb3_ext.adapter.sb3_private import num_updates
from sb3_ext.algorithms import ALGORITHMS
from sb3_ext.config.checks import check_count
from sb3_ext.off_policy.legality import environment_masks, mask_key

__all__ = ["STAGES", "SmokeError", "SmokeReport", "smoke_pipeline"]

STAGES = ("environment", "model", "learn", "update", "save", "load", "predict", "legal")
"""What is done, in order; an error names one of them."""

# A few updates of a small model; hyperparameters that are given replace them.
_OFF_POLICY = {"buffer_size": 2_000, "batch_size": 32, "learning_starts": 64, "train_freq": 1}
_PPO = {"n_steps": 16, "batch_size": 64, "n_epochs": 2}
_SMALL: dict[str, dict[str, Any]] = {
    "a2c": {"n_steps": 8},
    "ddqn": _OFF_POLICY,
    "dqn": _OFF_POLICY,
    "ppo": _PPO,
    "ppo_mask": _PPO,
    "qrdqn": _OFF_POLICY,
}

_FRESH_STEPS = 8


class SmokeError(AssertionError):
    """A stage of the pipeline failed.

    Attributes:
        stage: Which one, of `STAGES`.
    """

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
        transitions: Transitions that were collected.
        updates: What the model counts as updates.
        observations: Fresh observations that were predicted on.
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
    name = env_id if isinstance(env_id, str) else getattr(env_id, "__name__", "VecEnv")
    pipeline = _Pipeline(algorithm, name)

    def make() -> VecEnv:
        if not isinstance(env_id, str):
            return env_id()
        return _make_env(env_id, n_envs, dict(env_kwargs or {}), _knows_masks(algorithm))

    with tempfile.TemporaryDirectory() as folder:
        return pipeline.run(make, n_timesteps, hyperparams, Path(folder) / "model.zip")


def _knows_masks(algorithm: type[BaseAlgorithm]) -> bool:
    return "action_masks" in inspect.signature(algorithm.predict).parameters


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


class _Pipeline:
    """The stages, with their seconds."""

    def __init__(self, algorithm: type[BaseAlgorithm], env_id: str) -> None:
        self.algorithm: Any = algorithm
        self.env_id = env_id
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[Callable[[object, str], None]]:
        """Time a stage; gives a function (condition, message) that fails it."""
        subject = f"{self.algorithm.__name__} on {self.env_id}"

        def require(condition: object, message: str) -> None:
            if not bool(condition):
                raise SmokeError(name, subject, message)

        started = time.perf_counter()
        try:
            yield require
        except SmokeError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise SmokeError(name, subject, reason) from error
        self.seconds[name] = time.perf_counter() - started

    def run(
        self, make: Callable[[], VecEnv], n_timesteps: int, hyperparams: dict[str, Any], path: Path
    ) -> SmokeReport:
        with self.stage("environment"):
            env, fresh_env = make(), make()
        try:
            return self._run(env, fresh_env, n_timesteps, hyperparams, path)
        finally:
            env.close()
            fresh_env.close()

    def _run(
        self,
        env: VecEnv,
        fresh_env: VecEnv,
        n_timesteps: int,
        hyperparams: dict[str, Any],
        path: Path,
    ) -> SmokeReport:
        with self.stage("model"):
            model = self.algorithm(env=env, **self._arguments(env, hyperparams))
            before = _parameters(model)
        with self.stage("learn"):
            model.learn(n_timesteps)
        with self.stage("update") as require:
            _check_update(before, _parameters(model), require)
        with self.stage("save") as require:
            model.save(path)
            require(path.is_file(), f"save() wrote no file {path.name}")
        with self.stage("load") as require:
            loaded = self.algorithm.load(path, device=model.device)
            _check_same_weights(model, loaded, require)
        with self.stage("predict") as require:
            fresh = list(_fresh_observations(fresh_env))
            options = _knows_masks(self.algorithm)
            for observation, legal in fresh:
                masks = {"action_masks": legal} if options and legal is not None else {}
                arguments = {"deterministic": True, **masks}
                first = model.predict(observation, **arguments)[0]
                second = loaded.predict(observation, **arguments)[0]
                different = int((np.asarray(first) != np.asarray(second)).sum())
                require(
                    different == 0,
                    f"the loaded model predicts other actions in {different} of {len(first)} rows",
                )
        checked = options and fresh[0][1] is not None
        with self.stage("legal") as require:
            for observation, legal in fresh if checked else ():
                for deterministic in (True, False):
                    _check_legal(loaded, observation, legal, deterministic, require)
        return SmokeReport(
            env_id=self.env_id,
            algorithm=self.algorithm.__name__,
            stages=dict(self.seconds),
            transitions=int(model.num_timesteps),
            updates=num_updates(model),
            observations=sum(_rows(observation) for observation, _ in fresh),
            legal_checked=checked,
        )

    def _arguments(self, env: VecEnv, hyperparams: dict[str, Any]) -> dict[str, Any]:
        """Small settings of the nearest known algorithm, under those that were given."""
        kinds = [kind for kind in _SMALL if issubclass(self.algorithm, ALGORITHMS.resolve(kind))]
        # DDQN is a DQN too: the most special class counts.
        kinds.sort(key=lambda kind: len(ALGORITHMS.resolve(kind).__mro__))
        is_dict = isinstance(env.observation_space, spaces.Dict)
        return {
            "policy": "MultiInputPolicy" if is_dict else "MlpPolicy",
            "policy_kwargs": {"net_arch": [32]},
            "seed": 0,
            "device": "cpu",
            **(_SMALL[kinds[-1]] if kinds else {}),
            **hyperparams,
        }


# ------------------------------------------------------------------------------------ the checks


def _parameters(model: BaseAlgorithm) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in model.policy.named_parameters()}


def _check_update(
    before: Mapping[str, torch.Tensor],
    after: Mapping[str, torch.Tensor],
    require: Callable[[object, str], None],
) -> None:
    for name, value in after.items():
        require(value.isfinite().all(), f"parameter {name} is NaN or infinite after learning")
    changed = any(not torch.equal(before[name], value) for name, value in after.items())
    require(changed, f"learning changed none of the {len(after)} parameters")


def _check_same_weights(
    model: BaseAlgorithm, loaded: BaseAlgorithm, require: Callable[[object, str], None]
) -> None:
    saved, found = model.policy.state_dict(), loaded.policy.state_dict()
    missing = sorted(saved.keys() ^ found.keys())
    require(not missing, f"the loaded model has other weights: {', '.join(missing)}")
    for name, value in saved.items():
        same = torch.equal(value, found[name].to(value.device))
        require(same, f"weights {name} are not those that were saved")


def _fresh_observations(env: VecEnv) -> Iterator[tuple[Any, np.ndarray | None]]:
    """Observations of a few steps of random legal play, and the legal actions `[N, A]` or None."""
    rng = np.random.default_rng(12_345)
    env.seed(12_345)
    env.action_space.seed(12_345)
    observation = env.reset()
    for _ in range(_FRESH_STEPS):
        legal = _legal_actions(env, observation)
        yield observation, legal
        if legal is None:
            actions = np.stack([env.action_space.sample() for _ in range(env.num_envs)])
        else:
            actions = np.where(legal, rng.random(legal.shape), -1.0).argmax(axis=1)
        observation = env.step(actions)[0]


def _legal_actions(env: VecEnv, observation: Any) -> np.ndarray | None:
    key = mask_key(env.observation_space, env.action_space)
    if key is not None:
        return np.asarray(observation[key], dtype=bool)
    if not env.has_attr("action_masks"):
        return None
    return np.asarray(environment_masks(env), dtype=bool)


def _check_legal(
    model: Any,
    observation: Any,
    legal: np.ndarray | None,
    deterministic: bool,
    require: Callable[[object, str], None],
) -> None:
    assert legal is not None
    actions = model.predict(observation, deterministic=deterministic, action_masks=legal)[0]
    rows = np.arange(len(legal))
    wrong = rows[~legal[rows, actions]]
    if len(wrong):
        row = int(wrong[0])
        how = "without" if deterministic else "with"
        require(
            False,
            f"predicted {len(wrong)} illegal actions in {len(legal)} rows {how} exploration, the"
            f" first one {int(actions[row])} where {np.flatnonzero(legal[row]).tolist()} are legal",
        )


def _rows(observation: Any) -> int:
    first = next(iter(observation.values())) if isinstance(observation, dict) else observation
    return len(first)
