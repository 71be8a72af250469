"""Checkpoints: directories that are written as a whole and read without pickle.

A state is a dictionary of *parts* by name (``policy``, ``buffer``, ``host.policy``): nested
dictionaries (keys are strings or whole numbers), lists and tuples of tensors, arrays and numbers of
NumPy, None, numbers, booleans and strings. In JSON a list is a list; what JSON lacks is an object
with one key: ``{"dict": [[key, value], ...]}``, ``{"tuple": [...]}``, ``{"tensor": name}`` or
``{"array": name}``. docs/checkpoints.md says what the files are. A checkpoint that is being
replaced is called ``<name>.old`` meanwhile, and is found under that name.
"""

from __future__ import annotations

import json
import re
import shutil
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from resgym.files import read_json
from sb3_ext.config.checks import errors_named, one_line, shown
from sb3_ext.runs.files import (
    CheckpointWarning,
    check_content,
    file_digest,
    rename_durably,
    sync,
    versions,
    write_durably,
    write_json,
)
from sb3_ext.types import StateDict, StrPath

PartNames = Collection[str] | Callable[[list[str]], Collection[str]]

SCHEMA = 3
"""Version of the layout of a checkpoint; raised when a reader of the old one would misread it."""

MANIFEST, STATE, SUFFIX = "manifest.json", "state.json", ".safetensors"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_NUMBERED = re.compile(r"checkpoint-(\d+)(\.old)?")


def checkpoint_name(number: int) -> str:
    """The name of a run's checkpoint after this many transitions or steps."""
    return f"checkpoint-{number:012d}"


def save_checkpoint(path: StrPath, state: StateDict, *, keep_last: int | None = None) -> Path:
    """Writes a state as the directory ``path``, and returns it once everything is on the disk.

    Args:
        path: the directory, in a run folder that is made if needed; a checkpoint of that name is
            replaced. `load_checkpoint` finds the newest one whose name is of `checkpoint_name`.
        state: parts by name (letters, digits, ``_``, ``-`` and ``.``), see the module.
        keep_last: how many numbered checkpoints stay in the run folder; None removes none.

    Raises:
        OSError: it could not be written, or there is something else of that name; earlier
            checkpoints are as they were.
        TypeError, ValueError: the state holds something that cannot be stored; nothing is written.
    """
    path = Path(path)
    for name in (path.name, *state):
        if not _NAME.fullmatch(name) or path.suffix in (".old", ".tmp"):
            raise ValueError(f"path: {name!r} cannot be the name of a checkpoint or a part")
    aside, replaced = (path.with_name(path.name + end) for end in (".tmp", ".old"))
    parts = {part: split_state(value, part) for part, value in state.items()}
    _remove(aside)
    aside.mkdir(parents=True)
    try:
        _write(aside, parts)
        # Anything else stays: renaming over a file, or over a folder that is not empty, fails.
        if is_checkpoint(path) or path in list_checkpoints(path.parent):
            _remove(replaced)
            rename_durably(path, replaced)
        rename_durably(aside, path)
        _remove(replaced)
        if keep_last is not None:
            prune_checkpoints(path.parent, keep_last)
    except BaseException:
        _remove(aside)
        raise
    return path


def _write(folder: Path, parts: Mapping[str, tuple[Any, dict[str, Tensor]]]) -> None:
    plain = {part: value for part, (value, _) in parts.items()}
    write_json(folder / STATE, {"parts": plain, "versions": versions()})
    files = {STATE: file_digest(folder / STATE)}
    for part, (_, tensors) in parts.items():
        own, first = {}, dict[int, str]()
        for name, tensor in tensors.items():  # tensors may not share memory
            own[name] = tensor.detach().cpu().contiguous()
            if first.setdefault(own[name].untyped_storage().data_ptr(), name) != name:
                own[name] = own[name].clone()
        if own:
            file = folder / (part + SUFFIX)
            try:
                save_file(own, file)
            except SafetensorError as error:  # how the library reports a full disk
                raise OSError(f"{file}: {one_line(error)}") from error
            sync(file)
            files[file.name] = file_digest(file)
    # Without a last newline, whose loss would not be noticed.
    write_durably(folder / MANIFEST, json.dumps({"files": files, "schema": SCHEMA}, indent=1))


def _remove(folder: Path) -> None:
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder)
    else:
        folder.unlink(missing_ok=True)


def is_checkpoint(path: StrPath) -> bool:
    """Whether this is the directory of a checkpoint, valid or not."""
    return (Path(path) / MANIFEST).is_file()


def list_checkpoints(run_dir: StrPath) -> list[Path]:
    """The numbered checkpoints of a run, highest number first, damaged ones too."""
    run_dir = Path(run_dir)
    found = []
    for entry in run_dir.iterdir() if run_dir.is_dir() else ():
        match = _NUMBERED.fullmatch(entry.name)
        if match and entry.is_dir() and not _was_replaced(entry):
            found.append((int(match[1]), match[2] is None, entry))
    return [entry for *_, entry in sorted(found, reverse=True)]


def _was_replaced(path: Path) -> bool:
    return path.suffix == ".old" and path.with_suffix("").exists()


def prune_checkpoints(run_dir: Path, keep_last: int) -> None:
    """Removes all numbered checkpoints but the newest, and what interrupted writers left of them.

    Args:
        run_dir: no other process may be writing into it.
        keep_last: how many stay, at least 1; two allow going back when one is damaged.
    """
    if keep_last < 1:
        raise ValueError(f"keep_last must be at least 1, got {keep_last}")
    for path in list(run_dir.glob("checkpoint-*.tmp")):
        _remove(path)
    replaced = [path for path in run_dir.glob("checkpoint-*.old") if _was_replaced(path)]
    for path in [*list_checkpoints(run_dir)[keep_last:], *replaced]:
        # Renamed first: a removal that is interrupted must not leave half a checkpoint.
        aside = path.with_name(path.name + ".tmp")
        rename_durably(path, aside)
        _remove(aside)


def load_checkpoint(path: StrPath, parts: PartNames | None = None) -> StateDict:
    """Reads what `save_checkpoint` wrote.

    Args:
        path: a checkpoint, or a run folder for its newest valid one. Damaged checkpoints of a run
            folder are passed over with a `CheckpointWarning`.
        parts: the parts wanted, or a function that chooses them from the names there are; the files
            of others are not opened. None reads all.

    Returns:
        The state, its tensors on the CPU.

    Raises:
        CheckpointError: no checkpoint, a damaged one, one of another schema, or a part is missing.
    """
    return read_checkpoint(path, parts)[1]


def read_checkpoint(path: StrPath, parts: PartNames | None = None) -> tuple[Path, StateDict]:
    """As `load_checkpoint`; also returns the directory that was read."""
    path = Path(path)
    found = [path] if is_checkpoint(path) else list_checkpoints(path)
    found = found or list_checkpoints(path / "checkpoints")  # of a run that a driver made
    reasons: list[str] = []
    for candidate in found:
        try:
            state = _load(candidate, parts)
        except CheckpointError as error:
            reasons.append(str(error))
            continue
        for each in reasons:
            warnings.warn(f"{each}; using {candidate} instead", CheckpointWarning, stacklevel=2)
        return candidate, state
    raise CheckpointError(
        "; ".join(reasons) or f"{path}: no checkpoint here ({MANIFEST} is missing)"
    )


def _load(path: Path, parts: PartNames | None) -> StateDict:
    with checkpoint_errors(f"{path / MANIFEST}"):
        manifest = read_json(path / MANIFEST, "file")
        if manifest["schema"] != SCHEMA:
            raise ValueError(f"schema: got {manifest['schema']!r}, this version reads {SCHEMA}")
        files = dict(manifest["files"])
    with checkpoint_errors(f"{path / STATE}"):
        check_content(path / STATE, files[STATE])
        plain = read_json(path / STATE, "file")["parts"]
        names = [part for part in plain if _NAME.fullmatch(part)]
        wanted = parts(names) if callable(parts) else names if parts is None else parts
        if missing := [part for part in wanted if part not in names]:
            raise ValueError(f"parts: no {missing[0]!r}, it has {sorted(plain)}")
    state = {}
    for part in wanted:
        file, tensors = path / (part + SUFFIX), {}
        if file.name in files:
            with checkpoint_errors(f"{file}"):
                check_content(file, files[file.name])
                tensors = load_file(file)
        with checkpoint_errors(f"{path / STATE}: {part}"):
            state[part] = join_state(plain[part], tensors)
    return state


class CheckpointError(ValueError):
    """A checkpoint is missing, damaged, or does not fit; one line naming file and field."""


checkpoint_errors = partial(errors_named, kind=CheckpointError)


def split_state(value: Any, field: str) -> tuple[Any, dict[str, Tensor]]:
    """Split a state into data for JSON, and tensors by the names in it.

    Raises:
        TypeError, ValueError: a value or a key is of another type; names the field.
    """
    tensors: dict[str, Tensor] = {}

    def visit(item: Any, path: str) -> Any:
        # By exact type: a subclass, such as an enum, would come back as another.
        if item is None or type(item) in (bool, float, int, str):
            return item
        if isinstance(item, (Tensor, np.ndarray, np.generic)):
            while path in tensors:  # of {"a/b": ..} and {"a": {"b": ..}}
                path += "'"
            if isinstance(item, Tensor):
                tensors[path] = item
                return {"tensor": path}
            with errors_named(path, ValueError):  # text and dates have no tensor
                # In C order, since torch refuses negative strides.
                tensors[path] = torch.from_numpy(np.asarray(item, order="C"))
            return {"array": path}
        if isinstance(item, Mapping):
            _check_keys(item, path)
            return {"dict": [[key, visit(entry, f"{path}/{key}")] for key, entry in item.items()]}
        if type(item) not in (list, tuple):
            raise TypeError(f"{path}: got {type(item).__name__}; expected tensors and plain data")
        entries = [visit(entry, f"{path}/{number}") for number, entry in enumerate(item)]
        return entries if type(item) is list else {"tuple": entries}

    return visit(value, field), tensors


def _check_keys(keys: Iterable[Any], path: str) -> None:
    if wrong := [key for key in keys if type(key) not in (int, str)]:
        raise TypeError(f"{path}: got the key {shown(wrong[0])}; expected text or whole numbers")


def join_state(plain: Any, tensors: Mapping[str, Tensor]) -> Any:
    """Puts together what `split_state` took apart; malformed data raises what it may."""
    if isinstance(plain, list):
        return [join_state(entry, tensors) for entry in plain]
    if not isinstance(plain, dict):
        return plain
    ((kind, content),) = plain.items()
    if kind == "dict":
        _check_keys((key for key, _ in content), kind)
        return {key: join_state(entry, tensors) for key, entry in content}
    if kind == "tuple":
        return tuple(join_state(content, tensors))
    if kind not in ("tensor", "array"):
        raise ValueError(f"got {kind!r}; expected dict, tuple, tensor or array")
    tensor = tensors[content]
    return tensor if kind == "tensor" else tensor.numpy()[()]  # what has no axis is a number
