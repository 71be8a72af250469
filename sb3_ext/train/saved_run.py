"""A model in the folder of a run: rebuilt from the run's configuration, without a pickle.

SB3's ``.zip`` holds pickles, of which none is read: algorithm, environment and policy follow from
the run's ``args.yml`` and ``config.yml``, judged as all files are, and the weights are read by
``torch.load(weights_only=True)``.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import gymnasium
import rl_zoo3
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecFrameStack, VecNormalize

from sb3_ext.adapter.tensor_vec_env import TensorVecEnv
from sb3_ext.checkpoints.durable_files import rename_durably
from sb3_ext.checkpoints.format import errors_named
from sb3_ext.config.effects import placed
from sb3_ext.config.reading import read_mapping
from sb3_ext.ddqn import DDQN
from sb3_ext.train.config_files import check_hyperparameters, with_classes
from sb3_ext.train.search_spaces import known_algorithms

STATISTICS = "vecnormalize.safetensors"
_PLAYING = ("dueling", "mask_source", "policy", "policy_kwargs", "use_sde")
"""Arguments of an algorithm that a model needs to play."""


def is_run(folder: Path) -> bool:
    """Whether a folder is that of a run of `train`."""
    return len(list(folder.glob("*/args.yml"))) == 1


class SavedRun:
    """A run of ``python -m sb3_ext.train``.

    Args:
        folder: of the run, such as ``logs/ddqn/resgym-HironakaHost-v0_1``.
        env_kwargs: of the command line, which win over those of the run.

    Attributes:
        hyperparameters: the section of the run, checked, with objects for names.

    Raises:
        ValueError: the folder is of no run, or holds what a file may not ask for.
    """

    def __init__(self, folder: Path, env_kwargs: Mapping[str, Any] | None = None) -> None:
        self.folder = folder
        found = sorted(folder.glob("*/args.yml"))
        if len(found) != 1:
            raise ValueError(f"{folder}: has no */args.yml, so it is not the folder of a run")
        self.settings = found[0].parent
        saved = read_mapping(found[0])
        with errors_named(str(found[0]), ValueError):
            self.env_id = str(saved["env"])
            named = [saved["algo"]] if ":" in saved["algo"] else []
            self.algorithm: type[BaseAlgorithm] = known_algorithms(*named)[saved["algo"]]
            given = saved.get("env_kwargs") or {}
            if self.env_id not in gymnasium.registry:
                raise ValueError(f"env: got {self.env_id!r}; expected the id of an environment")
        section = read_mapping(self.settings / "config.yml")
        check_hyperparameters(section, self.algorithm, str(self.settings / "config.yml"))
        self.hyperparameters = with_classes(placed(section, folder), self.algorithm)
        self.env_kwargs = {**self.hyperparameters.get("env_kwargs", {}), **given}
        self.env_kwargs |= env_kwargs or {}

    def make_env(
        self, n_envs: int, seed: int = 0, log_dir: Path | None = None, **more: Any
    ) -> VecEnv:
        """So many environments with the run's wrappers and statistics; ``more`` are of `make`."""
        values = self.hyperparameters
        env = rl_zoo3.utils.create_test_env(
            self.env_id,
            n_envs=n_envs,
            seed=seed,
            log_dir=None if log_dir is None else str(log_dir),
            should_render=False,
            hyperparams={key: values[key] for key in ("env_wrapper",) if key in values},
            env_kwargs={**self.env_kwargs, **more},
            vec_env_cls=partial(batched, DummyVecEnv),  # type: ignore[arg-type]
        )
        if wrap := rl_zoo3.utils.get_wrapper_class(values, "vec_env_wrapper"):
            env = wrap(env)  # type: ignore[arg-type, assignment]
        if normalize := values.get("normalize"):
            env = VecNormalize(env, **(normalize if isinstance(normalize, dict) else {}))
            env.training = env.norm_reward = False
            load_statistics(env, self.settings / STATISTICS)
        if values.get("frame_stack"):
            env = VecFrameStack(env, values["frame_stack"])
        return env

    def model(self, path: Path, env: VecEnv, device: torch.device | str = "cpu") -> BaseAlgorithm:
        """The model of a ``.zip`` of the run, ready to play in ``env``.

        Raises:
            ValueError: the file is damaged, of another kind, or does not fit the configuration.
        """
        values = {key: self.hyperparameters[key] for key in _PLAYING if key in self.hyperparameters}
        make: Any = self.algorithm
        if issubclass(make, OffPolicyAlgorithm):
            values["buffer_size"] = 1
        if not issubclass(make, DDQN):
            for name in ("dueling", "mask_source"):
                values.pop(name, None)
        with errors_named(f"{path}: cannot be loaded", ValueError):
            model: BaseAlgorithm = make(env=env, device=device, **values)
            model.policy.load_state_dict(read_weights(path, model.device))
        model.policy.set_training_mode(False)
        return model

    @cached_property
    def _env(self) -> VecEnv:
        return self.make_env(1)

    def policy(self, path: Path, device: torch.device | str = "cpu") -> Any:
        """The policy of a ``.zip`` of the run; errors as of `model`."""
        return self.model(path, self._env, device).policy


def batched(single: Any, env_fns: Sequence[Callable[[], Any]], **more: Any) -> VecEnv:
    """One environment of tensors in place of many single ones, where it can be had."""
    try:
        return TensorVecEnv(env_fns)
    except Exception:  # needs others, or is broken: single environments will say why
        return single(env_fns, **more)  # type: ignore[no-any-return]


def read_weights(path: Path, device: torch.device | str = "cpu") -> dict[str, Any]:
    """The weights of a policy in a ``.zip`` of SB3, of no more bytes than the file has.

    Raises:
        ValueError: the file is damaged, or unpacks to more than it holds.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            content = _stored(archive, "policy.pth")
        with zipfile.ZipFile(io.BytesIO(content)) as inner:
            for each in inner.infolist():
                _check_stored(each)
        weights = torch.load(io.BytesIO(content), map_location=device, weights_only=True)
    except Exception as error:  # whatever a damaged file raises
        raise ValueError(f"is no model of stable-baselines3 ({type(error).__name__})") from error
    if not isinstance(weights, dict):
        raise ValueError("policy.pth: holds no weights")
    return weights


def _stored(archive: zipfile.ZipFile, name: str) -> bytes:
    _check_stored(archive.getinfo(name))
    return archive.read(name)


def _check_stored(entry: zipfile.ZipInfo) -> None:
    """SB3 and torch store without compression; what is compressed may unpack to any size."""
    if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
        raise ValueError(f"{entry.filename}: is compressed")


def save_statistics(env: VecNormalize, path: Path) -> None:
    """Writes the running means of a `VecNormalize` as tensors."""
    from safetensors.torch import save_file

    aside = path.with_suffix(".new")
    save_file(_tensors(env), aside)
    rename_durably(aside, path)


def load_statistics(env: VecNormalize, path: Path) -> None:
    """Puts back what `save_statistics` wrote.

    Raises:
        ValueError: the file is missing, damaged, or of other observations.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    with errors_named(str(path), ValueError):
        if not path.is_file():
            raise ValueError("is missing: statistics of VecNormalize")
        try:
            found, wanted = load_file(path), _tensors(env)
        except SafetensorError as error:
            raise ValueError(f"is damaged: {error}") from None
        shapes = {name: each.shape for name, each in wanted.items()}
        if {name: each.shape for name, each in found.items()} != shapes:
            raise ValueError("is of other observations")
    for name, kept in _kept(env).items():
        for field in ("mean", "var", "count"):
            value = found[f"{name}.{field}"].numpy()
            setattr(kept, field, float(value) if field == "count" else value)


def _kept(env: VecNormalize) -> dict[str, Any]:
    own = getattr(env, "obs_rms", None)
    entries = own if isinstance(own, dict) else {} if own is None else {"": own}
    return {"return": env.ret_rms, **{f"observation.{key}": each for key, each in entries.items()}}


def _tensors(env: VecNormalize) -> dict[str, torch.Tensor]:
    return {
        f"{name}.{field}": torch.as_tensor(getattr(kept, field), dtype=torch.float64).clone()
        for name, kept in _kept(env).items()
        for field in ("mean", "var", "count")
    }
