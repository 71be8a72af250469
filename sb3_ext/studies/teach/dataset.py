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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save
from safetensors.torch import load_file
from torch import Tensor

from resgym.files import check_seal, write_file
from resgym.solver.labels import SOLVER_VERSION
from sb3_ext.checkpoints.durable_files import check_content
from sb3_ext.checkpoints.format import errors_named
from sb3_ext.config.checks import one_line
from sb3_ext.runs.files import digest_of
from sb3_ext.studies.teach.examples import Examples

SCHEMA = 1
"""Version of the layout; raised when a reader of the old one would misread it."""

MANIFEST, PLAN = "manifest.json", "plan.json"
_PARTS = ("train", "held_out")
_NOTES = "teach"


class DatasetError(ValueError):
    """A dataset is missing, damaged, half written or of another kind; one line."""


@dataclass(frozen=True)
class Dataset:
    """A dataset in memory.

    Attributes:
        seat: ``host`` or ``agent``.
        objective: ``depth``, ``nodes`` or ``leaves``.
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
    shards = [_read_shard(path, entry, plan) for entry in manifest["shards"]]
    parts = {part: _part(shards, part == "held_out") for part in _PARTS}
    sizes = {name: plan[name] for name in ("seat", "objective", "dimension", "max_num_points")}
    families = [family["name"] for family in manifest["families"]]
    return Dataset(**sizes, families=families, manifest=manifest, parts=parts)


def joined(datasets: Sequence[Dataset]) -> Dataset:
    """Several datasets as one, with the manifest of the first; families are not told apart.

    Held-out positions are chosen by their form: datasets with the same share hold out the same.

    Raises:
        DatasetError: they are of other seats, objectives, dimensions or shares.
    """
    first = datasets[0]
    if len(datasets) == 1:
        return first
    for other in datasets[1:]:
        for name in ("seat", "objective", "dimension", "held_out"):
            wanted, given = (each.manifest["plan"][name] for each in (first, other))
            if wanted != given:
                raise DatasetError(f"data: {name}: got {wanted!r} and {given!r}, need the same")
    size = max(each.max_num_points for each in datasets)
    parts = {}
    for part in _PARTS:
        fields: dict[str, Any] = {"coords": None, "family": None}
        several = [each.parts[part] for each in datasets]
        missing = [size - each.points.shape[1] for each in several]
        fields["points"] = torch.cat(
            [
                torch.nn.functional.pad(each.points, (0, 0, 0, more), value=-1)
                for each, more in zip(several, missing, strict=True)
            ]
        )
        names = ("count", "optimal", "value", *(["coords"] if first.seat == "agent" else []))
        fields |= {name: torch.cat([getattr(each, name) for each in several]) for name in names}
        parts[part] = Examples(**fields)
    return replace(first, max_num_points=size, parts=parts)


def write_shard(file: Path, arrays: Mapping[str, np.ndarray], notes: Mapping[str, Any]) -> None:
    """Writes a shard aside and renames it; the same content gives the same bytes.

    The digest of the arrays stands beside the notes, so that damage is seen before there is a
    manifest.
    """
    narrow = {name: _narrow(array) for name, array in arrays.items()}
    text = json.dumps({**notes, "arrays": _arrays_digest(narrow)}, sort_keys=True)
    # One entry of metadata only: the library writes several in any order.
    write_file(file, save(narrow, {_NOTES: text}))


def _narrow(array: np.ndarray) -> np.ndarray:
    """The same integers in the smallest signed type that holds them all."""
    if array.dtype != np.bool_ and array.size:
        # The complement of the greatest needs as many bits as that does.
        array = array.astype(np.min_scalar_type(min(int(array.min()), ~int(array.max()))))
    return np.ascontiguousarray(array)


def read_shard_notes(file: Path) -> dict[str, Any]:
    """What a shard says about itself; nothing if there is none, or it is damaged."""
    try:
        with safe_open(file, framework="np") as opened:
            arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
            notes = json.loads((opened.metadata() or {}).get(_NOTES, "null"))
    except (SafetensorError, OSError, ValueError):
        return {}
    good = isinstance(notes, dict) and notes.pop("arrays", None) == _arrays_digest(arrays)
    return notes if good else {}


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
    with errors_named(f"{file}: cannot be read", DatasetError):
        document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        check_seal(document)
    if document.get("schema") != SCHEMA:
        raise DatasetError(f"{file}: schema: got {document.get('schema')!r}, need {SCHEMA}")
    solver = document["plan"]["solver"]
    if solver != SOLVER_VERSION:
        raise DatasetError(
            f"{file}: solver: labelled by version {solver!r}, this is {SOLVER_VERSION}; generate "
            "the dataset again"
        )
    return document


def _read_shard(path: Path, entry: dict[str, Any], plan: Mapping[str, Any]) -> dict[str, Tensor]:
    name, rows, dimension = entry["name"], entry["rows"], plan["dimension"]
    check_content(path / name, entry, DatasetError)
    try:
        tensors: dict[str, Tensor] = load_file(path / name)
    except (SafetensorError, OSError, ValueError) as error:
        raise DatasetError(f"{path / name}: {one_line(error)}") from None
    shapes: dict[str, tuple[int, ...]]
    shapes = dict.fromkeys(("count", "value", "family", "held_out"), (rows,))
    shapes["points"] = (rows, plan["max_num_points"], dimension)
    if plan["seat"] == "agent":
        shapes["coords"] = shapes["optimal"] = (rows, dimension)
    else:
        shapes["optimal"] = (rows, 2**dimension - dimension - 1)
    found = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    if found != shapes:
        raise DatasetError(f"{path / name}: shapes: got {found}, need {shapes}")
    return tensors


def _part(shards: Sequence[Mapping[str, Tensor]], held_out: bool) -> Examples:
    fields: dict[str, Any] = {"coords": None}
    for name in shards[0].keys() - {"held_out"}:
        rows = torch.cat([shard[name][shard["held_out"] == held_out] for shard in shards])
        fields[name] = rows if rows.dtype == torch.bool else rows.long()
    return Examples(**fields)
