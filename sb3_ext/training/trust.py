"""What a file may name without ``--trust``: known classes and plain data, and nothing else.

Configurations, run folders and the files of stable-baselines3 may come from anybody. Each refusal
is a ValueError of one line that names ``--trust``.
"""

from __future__ import annotations

import ast
import base64
import importlib
import io
import json
import pickle
from collections.abc import Callable, Collection, Mapping
from importlib.util import find_spec
from typing import IO, Any, ClassVar

import gymnasium
import torch
from stable_baselines3 import HerReplayBuffer
from stable_baselines3.common import buffers
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecEnvWrapper

from sb3_ext.checkpoints.policy_description import POLICIES
from sb3_ext.config.checks import one_line
from sb3_ext.networks.extractors import EXTRACTORS
from sb3_ext.networks.mlp import ACTIVATIONS
from sb3_ext.replay.buffers import TensorReplayBuffer
from sb3_ext.replay.prioritized import PrioritizedReplayBuffer
from sb3_ext.schedules.binding import BoundSchedule
from sb3_ext.schedules.schedules import Schedule

PACKAGES = ("gymnasium.wrappers", "rl_zoo3", "sb3_contrib", "sb3_ext", "stable_baselines3")
"""Where classes may come from that a configuration names."""

KINDS = (
    BaseCallback,
    BaseFeaturesExtractor,
    BasePolicy,
    VecEnvWrapper,
    buffers.BaseBuffer,
    gymnasium.Wrapper,
)
"""What a class may be that a configuration names."""

BUFFERS: Mapping[str, type] = {
    "DictReplayBuffer": buffers.DictReplayBuffer,
    "HerReplayBuffer": HerReplayBuffer,
    "PrioritizedReplayBuffer": PrioritizedReplayBuffer,
    "ReplayBuffer": buffers.ReplayBuffer,
    "TensorReplayBuffer": TensorReplayBuffer,
}
"""Replay buffers that a configuration may name without their module."""

# By name, since numpy renamed its core (pickles of either name are read) and rl_zoo3 is optional.
_MADE: Mapping[str, Collection[str]] = {
    **{f"numpy.{core}.multiarray": ("_reconstruct", "scalar") for core in ("_core", "core")},
    **{f"numpy.{core}.numeric": ("_frombuffer",) for core in ("_core", "core")},
    "collections": ("OrderedDict", "deque"),
    "numpy": ("dtype", "ndarray"),
    "numpy.random._pcg64": ("PCG64",),
    "numpy.random._pickle": ("__bit_generator_ctor", "__generator_ctor"),
    "numpy.random.bit_generator": ("SeedSequence", "__pyx_unpickle_SeedSequence"),
    "rl_zoo3.utils": ("SimpleLinearSchedule",),
    "sb3_ext.schedules.binding": ("ModelClock",),
    "stable_baselines3.common.running_mean_std": ("RunningMeanStd",),
    "stable_baselines3.common.type_aliases": ("TrainFreq", "TrainFrequencyUnit"),
    "stable_baselines3.common.utils": ("ConstantSchedule", "FloatSchedule", "LinearSchedule"),
    "stable_baselines3.common.vec_env.vec_normalize": ("VecNormalize",),
    "torch": ("device",),
    "torch._utils": ("_rebuild_parameter", "_rebuild_tensor_v2"),
}
"""What may be called to rebuild data, by module."""
MOVED: Mapping[str, str] = {
    "sb3_ext.common.buffers": "sb3_ext.replay.buffers",
    "sb3_ext.common.extractors": "sb3_ext.networks.extractors",
    "sb3_ext.common.point_set": "sb3_ext.points.extractors",
    "sb3_ext.common.schedule_binding": "sb3_ext.schedules.binding",
    "sb3_ext.common.schedules": "sb3_ext.schedules.schedules",
}
"""Modules as files of earlier versions name them, and where their classes are today."""

_MADE_KINDS = (BoundSchedule, Schedule, buffers.BaseBuffer, gymnasium.Space)
_NAMED_KINDS = (*KINDS, torch.nn.Module, torch.optim.Optimizer)
_NAMED_PACKAGES = (*PACKAGES, "gymnasium.spaces", "torch.nn.modules", "torch.optim")


def _is_of(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == each or module.startswith(f"{each}.") for each in packages)


def _class_of(
    module: str, name: str, packages: tuple[str, ...], kinds: tuple[type, ...]
) -> type | None:
    """A class by its module and name; None if it is not known, or from another package."""
    if not _is_of(module, packages) or not name.isidentifier():
        return None
    try:
        found = getattr(importlib.import_module(module), name, None)
    except ImportError:
        return None
    # Modules also hold what they import; the class itself has to be from these packages.
    known = (
        isinstance(found, type) and issubclass(found, kinds) and _is_of(found.__module__, packages)
    )
    return found if known else None


def _registered_class(module: str, name: str) -> type | None:
    """A class that the program itself has put into a registry."""
    known = (*ACTIVATIONS.values(), *EXTRACTORS.values(), *POLICIES.values())
    return next((it for it in known if (it.__module__, it.__qualname__) == (module, name)), None)


def known_class(dotted: str) -> type:
    """The class, of `KINDS` and from `PACKAGES`, that a configuration names."""
    module, _, name = str(dotted).rpartition(".")
    found = _class_of(module, name, PACKAGES, KINDS)
    if found is None:
        raise ValueError(
            f"{dotted!r} is no callback, wrapper, policy, extractor or buffer of "
            f"{', '.join(PACKAGES)}; only --trust lets a file name other code"
        )
    return found


def plain_value(text: str) -> Any:
    """What rl_zoo3 evaluates: the name of a replay buffer, a literal, or ``dict(...)`` of these."""
    if text in BUFFERS:
        return BUFFERS[text]
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        if not (isinstance(tree, ast.Call) and ast.unparse(tree.func) == "dict"):
            return ast.literal_eval(tree)
        if tree.args or not all(each.arg for each in tree.keywords):
            raise ValueError("dict: takes only names with values")
        return {str(each.arg): ast.literal_eval(each.value) for each in tree.keywords}
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError(
            f"{text!r} is code, which only --trust runs; plain are dict(...) of numbers and texts, "
            f"and the buffers {', '.join(BUFFERS)}"
        ) from error


def _tensors(content: bytes) -> Any:
    return torch.load(io.BytesIO(content), weights_only=True)


# The standard unpickler in Python, since that in C does not let calls be looked at.
_Unpickler: Any = pickle._Unpickler  # type: ignore[attr-defined]


class _KnownUnpickler(_Unpickler):  # type: ignore[misc]
    """Finds known names only, calls only those that rebuild data, and changes no class."""

    dispatch: ClassVar[dict[int, Any]] = {
        code: step
        for code, step in _Unpickler.dispatch.items()
        if code not in b"".join((pickle.INST, pickle.OBJ, pickle.EXT1, pickle.EXT2, pickle.EXT4))
    }

    def __init__(self, file: IO[bytes], where: str) -> None:
        super().__init__(file)
        self._where = where
        self._callable: dict[int, Any] = {}

    def _refuse(self, name: str) -> ValueError:
        if name.startswith("sb3_ext.") and find_spec(".".join(name.split(".")[:2])) is None:
            return ValueError(
                f"{self._where}: holds {name}, a name of an earlier version of sb3_ext; load it "
                "there, or take a checkpoint folder of the run"
            )
        return ValueError(
            f"{self._where}: holds {name}, which is not among the known classes and may run code; "
            "only --trust loads it"
        )

    def find_class(self, module: str, name: str) -> Any:
        module = MOVED.get(module, module)
        if (module, name) == ("torch.storage", "_load_from_bytes"):
            return self._may_be_called(_tensors)
        if name in _MADE.get(module, ()):
            return self._may_be_called(getattr(importlib.import_module(module), name))
        found = _class_of(module, name, _NAMED_PACKAGES, (*_MADE_KINDS, *_NAMED_KINDS))
        if found is None:
            found = _registered_class(module, name)
        if found is None:
            raise self._refuse(f"{module}.{name}")
        return self._may_be_called(found) if issubclass(found, _MADE_KINDS) else found

    def _may_be_called(self, target: Any) -> Any:
        self._callable[id(target)] = target
        return target

    def _call(self, target: Any, step: Callable[[Any], None]) -> None:
        if id(target) not in self._callable:
            raise self._refuse(f"a call of {getattr(target, '__name__', target)!r}")
        step(self)

    def _build(self) -> None:
        target = self.stack[-2]
        if isinstance(target, type) or id(target) in self._callable:
            raise self._refuse(f"a change of {getattr(target, '__name__', target)!r}")
        _Unpickler.load_build(self)

    dispatch |= {
        pickle.REDUCE[0]: lambda self: self._call(self.stack[-2], _Unpickler.load_reduce),
        pickle.NEWOBJ[0]: lambda self: self._call(self.stack[-2], _Unpickler.load_newobj),
        pickle.NEWOBJ_EX[0]: lambda self: self._call(self.stack[-3], _Unpickler.load_newobj_ex),
        pickle.BUILD[0]: _build,
    }


def read_pickle(file: IO[bytes], where: str | None = None) -> Any:
    """Reads a pickle whose parts are all known; messages call it ``where``, or by its file's name.

    It calls nothing but what rebuilds numpy arrays, spaces, schedules, buffers and statistics.

    Raises:
        ValueError: it is damaged, or holds what is not known.
    """
    where = where or str(getattr(file, "name", "pickle"))
    try:
        return _KnownUnpickler(file, where).load()
    except Exception as error:  # whatever a damaged pickle raises
        if isinstance(error, ValueError) and str(error).startswith(where):
            raise
        raise ValueError(f"{where}: is no pickle that can be read ({one_line(error)})") from error


def read_zip_data(text: str, custom_objects: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The fields of a model from the ``data`` of a .zip, as SB3's `json_to_data` reads them.

    Args:
        text: the JSON; fields that are no plain data are pickles in it.
        custom_objects: fields that are taken from here instead.
    """
    fields, custom = json.loads(text), custom_objects or {}
    if not isinstance(fields, dict):
        raise ValueError("data: must be a mapping")
    for name, value in fields.items():
        if name in custom:
            fields[name] = custom[name]
        elif isinstance(value, dict) and ":serialized:" in value:
            content = base64.b64decode(value[":serialized:"])
            fields[name] = read_pickle(io.BytesIO(content), f"{name} of the model")
    return fields
