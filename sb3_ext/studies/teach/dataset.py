"""Datasets of labelled positions on disk, and how they are read.

    plan.json                 what determines the content: configuration, seed, versions
    shard-00000.safetensors   labelled positions; written aside and renamed
    manifest.json             size and digest of every shard, families, counts; written last
    provenance.json           command line, versions of packages, commit, time; decides nothing

A folder without a manifest is not finished. Nothing that is read is a pickle, and no name from a
file is imported.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from resgym.solver.labels import SOLVER_VERSION
from sb3_ext.checkpoints.durable_files import check_content, rename_durably, sync
from sb3_ext.studies.json_files import digest_of, sealed
from sb3_ext.studies.teach.examples import Examples

__all__ = ["Dataset", "DatasetError", "load_dataset", "read_shard_notes", "write_shard"]

SCHEMA = 1
"""Version of the layout; raised when a reader of the old one would misread it."""

MANIFEST, PLAN = "manifest.json", "plan.json"
SEATS = ("host", "agent")
_PARTS = ("train", "held_out")
_NOTES = "teach"
_MANIFEST_BYTES = 1 << 24


class DatasetError(ValueError):
    """A dataset is missing, damaged, half written or of another kind; one line."""


@dataclass(frozen=True)
class Dataset:
    """A dataset in memory.

    Attributes:
        seat: ``host`` or ``agent``.
        objective: ``depth`` or ``nodes``.
        dimension: number of axes D.
        max_num_points: rows P of a position.
        families: names.
        manifest: all that is known about it, as plain data.
        parts: by name, see `split`.
    """

    seat: str
    objective: str
    dimension: int
    max_num_points: int
    families: list[str]
    manifest: Mapping[str, Any]
    parts: Mapping[str, Examples]

    def split(self, part: str) -> Examples:
        """``train`` or ``held_out``: no position is in one if an equivalent one is in the other.

        Raises:
            ValueError: another name.
        """
        if part not in self.parts:
            raise ValueError(f"part must be one of {', '.join(_PARTS)}, got {part!r}")
        return self.parts[part]


def load_dataset(
    path: str | os.PathLike[str], *, dimension: int | None = None, seat: str | None = None
) -> Dataset:
    """Reads a dataset after its size and digests were compared with the manifest.

    Args:
        path: the folder that ``python -m sb3_ext.teach generate --out`` wrote.
        dimension: refuse a dataset of another dimension.
        seat: refuse a dataset of another seat.

    Raises:
        DatasetError: a ValueError of one line: missing, half written, damaged, changed, labelled
            by another version of the solver, or not what was asked for.
    """
    path = Path(path)
    manifest = _read_manifest(path)
    plan, file = manifest["plan"], path / MANIFEST
    for name, wanted in (("dimension", dimension), ("seat", seat)):
        if wanted is not None and plan[name] != wanted:
            raise DatasetError(f"{file}: {name}: got {plan[name]!r}, need {wanted!r}")
    for entry in manifest["shards"]:
        check_content(path / entry["name"], entry, DatasetError)
    shards = [_read_shard(path / entry["name"], entry, plan) for entry in manifest["shards"]]
    parts = {part: _part(shards, part == "held_out", plan) for part in _PARTS}
    for part, split in parts.items():
        if len(split.count) != manifest["rows"][part]:
            raise DatasetError(
                f"{file}: rows: {part}: got {len(split.count)}, need {manifest['rows'][part]}"
            )
    sizes = {name: plan[name] for name in ("seat", "objective", "dimension", "max_num_points")}
    families = [family["name"] for family in manifest["families"]]
    return Dataset(**sizes, families=families, manifest=manifest, parts=parts)


def shard_name(number: int) -> str:
    """The file of a shard."""
    return f"shard-{number:05d}.safetensors"


def manifest_text(content: Mapping[str, Any]) -> str:
    """The one way to write a manifest, its own digest included."""
    return json.dumps(sealed(content), indent=1, sort_keys=True) + "\n"


def write_shard(file: Path, arrays: Mapping[str, np.ndarray], notes: Mapping[str, Any]) -> None:
    """Writes a shard aside and renames it; the same content gives the same bytes.

    The digest of the arrays stands beside the notes, so that damage is seen before there is a
    manifest.
    """
    aside = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    narrow = {name: _narrow(array) for name, array in arrays.items()}
    tensors = {name: torch.from_numpy(array) for name, array in narrow.items()}
    notes = {**notes, "arrays": _arrays_digest(narrow)}
    try:
        # One entry of metadata only: the library writes several in any order.
        save_file(tensors, aside, {_NOTES: json.dumps(notes, sort_keys=True)})
        sync(aside)
        rename_durably(aside, file)
    except SafetensorError as error:  # how the library reports a full disk
        raise OSError(f"{file}: cannot be written: {error}") from error
    finally:
        aside.unlink(missing_ok=True)


def _narrow(array: np.ndarray) -> np.ndarray:
    """The same integers in the smallest type that holds them all."""
    if array.dtype == np.bool_ or not array.size:
        return np.ascontiguousarray(array)
    for kind in (np.int8, np.int16, np.int32):
        if np.iinfo(kind).min <= array.min() and array.max() <= np.iinfo(kind).max:
            return np.ascontiguousarray(array, kind)
    return np.ascontiguousarray(array)


def read_shard_notes(file: Path) -> dict[str, Any] | None:
    """What a shard says about itself; None if there is none, or it is damaged."""
    try:
        with safe_open(file, framework="pt") as opened:
            arrays = {name: opened.get_tensor(name).numpy() for name in opened.keys()}  # noqa: SIM118
            notes = json.loads((opened.metadata() or {}).get(_NOTES, "null"))
    except (SafetensorError, OSError, ValueError):
        return None
    if not isinstance(notes, dict) or notes.pop("arrays", None) != _arrays_digest(arrays):
        return None
    return notes


def _arrays_digest(arrays: Mapping[str, np.ndarray]) -> str:
    return digest_of(*(part for name in sorted(arrays) for part in (name, arrays[name])))


def _read_manifest(path: Path) -> dict[str, Any]:
    file = path / MANIFEST
    if not file.is_file():
        if (path / PLAN).is_file():
            raise DatasetError(
                f"{path}: half written: there is no {MANIFEST} yet; run the same generate command "
                "again to finish it"
            )
        raise DatasetError(f"{path}: there is no dataset, {MANIFEST} is missing")
    try:
        with file.open("rb") as stream:
            text = stream.read(_MANIFEST_BYTES).decode("utf-8")
        document = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise DatasetError(f"{file}: cannot be read: {' '.join(str(error).split())}") from None
    if not isinstance(document, dict) or "schema" not in document:
        raise DatasetError(f"{file}: is no manifest of a dataset")
    if document["schema"] != SCHEMA:
        raise DatasetError(f"{file}: schema: got {document['schema']!r}, need {SCHEMA}")
    if text != manifest_text(document):
        raise DatasetError(f"{file}: sha256: was changed after it was written")
    solver = document["plan"]["solver"]
    if solver != SOLVER_VERSION:
        raise DatasetError(
            f"{file}: solver: labelled by version {solver!r}, this is {SOLVER_VERSION}; generate "
            "the dataset again"
        )
    return document


def _read_shard(file: Path, entry: Mapping[str, Any], plan: Mapping[str, Any]) -> dict[str, Tensor]:
    try:
        tensors: dict[str, Tensor] = load_file(file)
    except (SafetensorError, OSError, ValueError) as error:
        raise DatasetError(f"{file}: {' '.join(str(error).split())}") from None
    dimension, rows = plan["dimension"], entry["rows"]
    host = plan["seat"] == "host"
    shapes = {
        "points": (rows, plan["max_num_points"], dimension),
        "count": (rows,),
        "optimal": (rows, 2**dimension - dimension - 1 if host else dimension),
        "value": (rows,),
        "family": (rows,),
        "held_out": (rows,),
    }
    if not host:
        shapes["coords"] = (rows, dimension)
    found = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    if found != shapes:
        raise DatasetError(f"{file}: shapes: got {found}, need {shapes}")
    return tensors


def _part(
    shards: Sequence[Mapping[str, Tensor]], held_out: bool, plan: Mapping[str, Any]
) -> Examples:
    def gathered(name: str, kind: torch.dtype) -> Tensor:
        return torch.cat([shard[name][shard["held_out"] == held_out].to(kind) for shard in shards])

    return Examples(
        gathered("points", torch.int64),
        gathered("count", torch.int64),
        gathered("coords", torch.bool) if plan["seat"] == "agent" else None,
        gathered("optimal", torch.bool),
        gathered("value", torch.int64),
        gathered("family", torch.int64),
    )
