"""The whole way of a model as one public check: make, learn, save, load, predict.

    from sb3_ext.testing import smoke_pipeline
    print(smoke_pipeline("resgym/HironakaHost-v0", algo="ddqn"))

It takes seconds and says that the parts fit together, not that anything was learned.
"""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

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
from sb3_ext.adapter.seam import num_updates
from sb3_ext.checkpoints.models import check_finite
from sb3_ext.config.checks import one_line
from sb3_ext.ddqn.algorithms import ALGORITHMS
from sb3_ext.ddqn.legality import environment_masks, mask_key

# A few updates of a small model.
_SMALL: dict[str, Any] = {"policy_kwargs": {"net_arch": [32]}, "seed": 0, "device": "cpu"}
_OFF_POLICY = {"buffer_size": 2_000, "batch_size": 32, "learning_starts": 64, "train_freq": 1}
_ON_POLICY = {"n_steps": 16}
_FRESH_STEPS = 8


class SmokeReport(NamedTuple):
    """What was done.

    Attributes:
        transitions: how many were collected.
        updates: what the model counts as updates.
        legal_checked: whether predictions were compared with a mask; False where neither the
            environment nor its observation has one, or where `predict` of the algorithm does not
            know of masks (DQN, QRDQN, PPO, A2C).
    """

    transitions: int
    updates: int
    legal_checked: bool


def smoke_pipeline(
    env_id: str,
    algo: str | type[BaseAlgorithm] = "ddqn",
    *,
    env_kwargs: Mapping[str, Any] | None = None,
    n_envs: int = 8,
    n_timesteps: int = 384,
    **hyperparams: Any,
) -> SmokeReport:
    """Take a model the whole way at a small size, and check what every stage must keep.

    After learning at least one parameter has changed and all are finite numbers; the loaded model
    has the weights of the saved one bit for bit and predicts the same in games that it plays; no
    prediction, with or without exploration, is illegal.

    Args:
        env_id: Id of an environment; one of this package is made as a batch of tensors.
        algo: `ddqn`, `dqn`, `qrdqn`, `ppo`, `ppo_mask`, `a2c`, or a class.
        env_kwargs: Keyword arguments of the environment. Algorithms without masks play the
            environments of this package with `invalid_action="noop"` unless told otherwise.
        n_envs: Rows.
        n_timesteps: Transitions to learn from.
        **hyperparams: Arguments of the algorithm, `policy` among them.

    Raises:
        AssertionError: A stage failed; one line that begins with its name: `environment`, `model`,
            `learn`, `update`, `save`, `load`, `predict` or `legal`.
    """
    algorithm: Any = ALGORITHMS.resolve(algo)
    masks = "action_masks" in inspect.signature(algorithm.predict).parameters

    @contextmanager
    def stage(name: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            where = f"{name}: {algorithm.__name__} on {env_id}"
            raise AssertionError(f"{where}: {type(error).__name__}: {one_line(error)}") from error

    with stage("environment"):
        env, other = (_make_env(env_id, n_envs, env_kwargs or {}, masks) for _ in range(2))
    with stage("model"):
        is_dict = isinstance(env.observation_space, spaces.Dict)
        policy = "MultiInputPolicy" if is_dict else "MlpPolicy"
        small = _OFF_POLICY if issubclass(algorithm, OffPolicyAlgorithm) else _ON_POLICY
        model = algorithm(env=env, **{"policy": policy, **_SMALL, **small, **hyperparams})
        before = [value.detach().clone() for value in model.policy.parameters()]
    with stage("learn"):
        model.learn(n_timesteps)
    with stage("update"):
        check_finite(model)
        same = map(torch.equal, before, model.policy.parameters())
        _require(not all(same), "learning changed no parameter")
    with tempfile.TemporaryDirectory() as folder:
        with stage("save"):
            model.save(Path(folder, "model.zip"))
        with stage("load"):
            loaded = algorithm.load(Path(folder, "model.zip"), device=model.device)
            weights = [each.policy.state_dict().values() for each in (model, loaded)]
            _require(all(map(torch.equal, *weights)), "the weights are not those that were saved")
    key = mask_key(other.observation_space, other.action_space)
    legal: Any = None
    observation: Any = other.reset()
    for _ in range(_FRESH_STEPS):
        if masks and key is not None:
            legal = np.asarray(observation[key], dtype=bool)
        elif masks and other.has_attr("action_masks"):
            legal = np.asarray(environment_masks(other), dtype=bool)
        more = {"action_masks": legal} if masks else {}
        with stage("predict"):
            greedy, again = (
                each.predict(observation, deterministic=True, **more)[0] for each in (model, loaded)
            )
            _require(np.array_equal(greedy, again), "the loaded model predicts other actions")
        with stage("legal"):
            drawn, _ = loaded.predict(observation, **more)
            for actions in (greedy, drawn):
                fine = legal is None or legal[np.arange(len(legal)), actions].all()
                _require(fine, f"got the actions {actions}; legal are {legal}")
        with stage("environment"):
            observation = other.step(drawn)[0]
    return SmokeReport(model.num_timesteps, num_updates(model), legal is not None)


def _make_env(env_id: str, n_envs: int, given: Mapping[str, Any], masks: bool) -> VecEnv:
    if not env_id.split(":")[-1].startswith("resgym/"):
        return make_vec_env(env_id, n_envs, env_kwargs=dict(given))
    given = given if masks else {"invalid_action": "noop", **given}
    return TensorVecEnv(gymnasium.make_vec(env_id, num_envs=n_envs, **given))


def _require(condition: object, message: str) -> None:
    if not condition:
        raise AssertionError(message)
