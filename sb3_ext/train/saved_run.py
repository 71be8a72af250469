"""A model in the folder of a run: rebuilt from the run's configuration, without a pickle.

SB3's ``.zip`` holds pickles, of which none is read: algorithm, environment and policy follow from
the run's ``args.yml`` and ``config.yml``, judged as all files are, and the weights are read by
``torch.load(weights_only=True)``.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv, unwrap_vec_normalize

from sb3_ext.config.checks import one_line
from sb3_ext.config.reading import read_mapping
from sb3_ext.runs.checkpoint_format import errors_named
from sb3_ext.train.flags import arguments_of, make_parser
from sb3_ext.train.manager import Manager
from sb3_ext.train.normalize import load_statistics
from sb3_ext.train.search_spaces import check_algorithm

_PLAYING = ("policy", "policy_kwargs", "use_sde")
_PLAYING_DDQN = (*_PLAYING, "dueling", "mask_source")
"""Arguments of an algorithm that a model needs to play."""


class SavedRun:
    """A run of ``python -m sb3_ext.train``.

    Args:
        folder: of the run, such as ``logs/ddqn/resgym-HironakaHost-v0_1``.
        env_kwargs: of the command line, which win over those of the run.

    Raises:
        ValueError: the folder is of no run, or holds what a file may not ask for.
    """

    def __init__(self, folder: Path, env_kwargs: Mapping[str, Any] | None = None) -> None:
        self.folder, file = folder, arguments_of(folder)
        saved = read_mapping(file)
        with errors_named(str(file), ValueError):
            if saved["env"] not in gymnasium.registry:
                raise ValueError(f"env: got {saved['env']!r}; expected the id of an environment")
            words = [f"--algo={check_algorithm(saved['algo'])}", f"--env={saved['env']}"]
        args = make_parser().parse_args(words)
        args.resume, args.verbose = folder, 0
        self._manager = Manager(args)
        hyperparameters, _ = self._manager.read_hyperparameters()
        hyperparameters.pop("collector", None)
        self._arguments = self._manager._preprocess_hyperparams(hyperparameters)[0]
        self._manager.make_wrappers()
        self._manager.env_kwargs = {**self._manager.env_kwargs, **(env_kwargs or {})}

    def make_env(
        self, n_envs: int, seed: int = 0, log_dir: Path | None = None, **more: Any
    ) -> VecEnv:
        """So many environments with the run's wrappers and statistics; ``more`` are of `make`."""
        manager: Any = self._manager
        manager.seed, manager.save_path = seed, log_dir
        manager.env_kwargs = {**manager.env_kwargs, **more}
        env: VecEnv = manager.create_envs(n_envs, no_log=log_dir is None)
        if (statistics := unwrap_vec_normalize(env)) is not None:
            statistics.training = statistics.norm_reward = False
            load_statistics(statistics, self.folder / manager.env_name)
        return env

    def model(self, path: Path, env: VecEnv, device: torch.device | str = "cpu") -> BaseAlgorithm:
        """The model of a ``.zip`` of the run, ready to play in ``env``.

        Raises:
            ValueError: the file is damaged, of another kind, or does not fit the configuration.
        """
        make: Any = self._manager.algorithm
        needed = _PLAYING_DDQN if self._manager.ours else _PLAYING
        values = {key: self._arguments[key] for key in needed if key in self._arguments}
        if issubclass(make, OffPolicyAlgorithm):
            values["buffer_size"] = 1
        with errors_named(f"{path}: cannot be loaded", ValueError):
            model: BaseAlgorithm = make(env=env, device=device, **values)
            model.policy.load_state_dict(read_weights(path, model.device))
        model.policy.set_training_mode(False)
        return model


def read_weights(path: Path, device: torch.device | str = "cpu") -> dict[str, Any]:
    """The weights of a policy in a ``.zip`` of SB3, of no more bytes than the file has.

    Raises:
        ValueError: the file is damaged, or unpacks to more than it holds.
    """
    what = "is damaged, or no .zip of stable-baselines3"
    try:
        with zipfile.ZipFile(path) as archive:
            _check_stored(archive.getinfo("policy.pth"))
            content = archive.read("policy.pth")
        what = "policy.pth: holds something else than weights"
        with zipfile.ZipFile(io.BytesIO(content)) as inner:
            for each in inner.infolist():
                _check_stored(each)
        weights = torch.load(io.BytesIO(content), map_location=device, weights_only=True)
        return dict(weights)
    except Exception as error:  # whatever a damaged file raises
        raise ValueError(f"{what} ({type(error).__name__}: {one_line(error)[:100]})") from error


def _check_stored(entry: zipfile.ZipInfo) -> None:
    """SB3 and torch store without compression; what is compressed may unpack to any size."""
    if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
        raise ValueError(f"{entry.filename}: is compressed")
