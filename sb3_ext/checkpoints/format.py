"""The files of one checkpoint directory: how they are written, checked and read.

What they are for is said in `sb3_ext.checkpoints.checkpoint`, also the place to import from.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from sb3_ext.checkpoints.durable_files import file_digest, sync
from sb3_ext.checkpoints.plain_state import join_state, split_state
from sb3_ext.runs.provenance import versions

__all__ = [
    "MANIFEST",
    "NAME",
    "SCHEMA",
    "STATE",
    "CheckpointError",
    "CheckpointWarning",
    "check_file",
    "read_manifest",
    "read_part",
    "read_state",
    "split_parts",
    "write_files",
]

SCHEMA = 1
"""Version of the layout described above; raised when a reader of the old one would misread it."""

MANIFEST, STATE, SUFFIX = "manifest.json", "state.json", ".safetensors"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
"""What directories, parts and files may be called."""

_DIGEST = re.compile(r"[0-9a-f]{64}")
_MANIFEST_BYTES = 1 << 20


class CheckpointError(ValueError):
    """A checkpoint is missing, damaged, or does not fit; one line naming file and field."""


class CheckpointWarning(UserWarning):
    """Something about a checkpoint that did not stop the work."""


def split_parts(state: Mapping[str, Any]) -> tuple[str, dict[str, dict[str, Tensor]]]:
    """The text of ``state.json`` and the tensors of every part."""
    plain, tensors = {}, {}
    for part, value in state.items():
        if not isinstance(part, str) or not NAME.fullmatch(part):
            raise ValueError(f"state: {part!r} cannot be the name of a part")
        plain[part], tensors[part] = split_state(value, part)
    document = {"parts": plain, "versions": versions()}
    return json.dumps(document, allow_nan=False, indent=1) + "\n", tensors


def write_files(folder: Path, text: str, tensors: Mapping[str, Mapping[str, Tensor]]) -> None:
    """Writes ``text`` and the tensors by part into an empty directory, and waits for the disk.

    Raises:
        OSError: they could not be written.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    (folder / STATE).write_text(text, encoding="utf-8")
    written = [folder / STATE]
    for part, values in tensors.items():
        if values:
            file = folder / (part + SUFFIX)
            try:
                save_file(_own_memory(values), file)
            except SafetensorError as error:  # how the library reports a full disk
                raise OSError(f"{file}: cannot be written: {_line(error)}") from error
            written.append(file)
    files = {}
    for file in written:
        sync(file)
        files[file.name] = {"bytes": file.stat().st_size, "sha256": file_digest(file)}
    (folder / MANIFEST).write_text(_manifest_text(files), encoding="utf-8")
    sync(folder / MANIFEST)
    sync(folder)


def _own_memory(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Dense tensors on the CPU, no two of which share memory, as the file format wants them."""
    seen: set[int] = set()
    result = {}
    for name, tensor in tensors.items():
        value = tensor.detach().cpu().contiguous()
        address = value.untyped_storage().data_ptr()
        result[name] = value.clone() if address in seen else value
        seen.add(address)
    return result


def _manifest_text(files: Mapping[str, Mapping[str, Any]]) -> str:
    """The one way to write a manifest of these files, its own digest included."""
    document: dict[str, Any] = {"files": files, "schema": SCHEMA}
    text = json.dumps(document, sort_keys=True).encode()
    document["sha256"] = hashlib.sha256(text).hexdigest()
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def read_manifest(path: Path) -> dict[str, dict[str, Any]]:
    """Size and digest by file name, checked for form."""
    file = path / MANIFEST
    try:
        with file.open("rb") as stream:
            content = stream.read(_MANIFEST_BYTES + 1)
        text = content.decode("utf-8")
        document = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{file}: cannot be read: {_line(error)}") from error
    if len(content) > _MANIFEST_BYTES or not isinstance(document, dict):
        raise CheckpointError(f"{file}: is no manifest")
    schema = document.get("schema")
    if type(schema) is not int or schema != SCHEMA:
        need = f"need {SCHEMA}"
        if type(schema) is int and schema > SCHEMA:
            need = f"this version reads up to {SCHEMA}; a newer version of the package wrote it"
        raise CheckpointError(f"{file}: schema: got {schema!r}, {need}")
    files = document.get("files")
    if not isinstance(files, dict) or STATE not in files:
        raise CheckpointError(f"{file}: files: {STATE} is missing")
    for name, entry in files.items():
        if not NAME.fullmatch(name) or not (name == STATE or name.endswith(SUFFIX)):
            raise CheckpointError(f"{file}: files: {name!r} cannot be the name of a file here")
        good = isinstance(entry, dict) and set(entry) == {"bytes", "sha256"}
        good = good and type(entry["bytes"]) is int and isinstance(entry["sha256"], str)
        if not good or not _DIGEST.fullmatch(entry["sha256"]):
            raise CheckpointError(f"{file}: files: {name}: need bytes and sha256, got {entry!r}")
    if text != _manifest_text(files):
        raise CheckpointError(f"{file}: sha256: was changed after it was written")
    return files


def check_file(path: Path, name: str, files: Mapping[str, dict[str, Any]]) -> Path:
    """The path of a file after its size and digest were compared with the manifest's."""
    file, entry = path / name, files[name]
    if not file.is_file():
        raise CheckpointError(f"{file}: the file is missing")
    try:
        size = file.stat().st_size
        if size != entry["bytes"]:
            raise CheckpointError(f"{file}: size: got {size} bytes, need {entry['bytes']}")
        digest = file_digest(file)
    except OSError as error:
        raise CheckpointError(f"{file}: cannot be read: {_line(error)}") from error
    if digest != entry["sha256"]:
        raise CheckpointError(
            f"{file}: sha256: got {digest[:12]}..., need {entry['sha256'][:12]}...; the file is"
            " damaged"
        )
    return file


def read_state(path: Path, files: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The plain halves of all parts, by name."""
    file = check_file(path, STATE, files)
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{file}: cannot be read: {_line(error)}") from error
    parts = document.get("parts") if isinstance(document, dict) else None
    if not isinstance(parts, dict) or not all(NAME.fullmatch(part) for part in parts):
        raise CheckpointError(f"{file}: parts: missing or malformed")
    return parts


def read_part(
    path: Path,
    part: str,
    plain: Any,
    files: Mapping[str, dict[str, Any]],
    device: torch.device | str,
) -> Any:
    """One part, its tensors put back to where ``plain`` refers to them."""
    name = part + SUFFIX
    tensors: dict[str, Tensor] = {}
    if name in files:
        tensors = dict(_read_tensors(check_file(path, name, files), device))
    try:
        return join_state(plain, tensors, part)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path / STATE}: {_line(error)}") from error


def _read_tensors(file: Path, device: torch.device | str) -> Iterator[tuple[str, Tensor]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="pt", device=str(device)) as opened:
            for name in opened.keys():  # noqa: SIM118 - not a dictionary, it has no iterator
                yield name, opened.get_tensor(name)
    except (SafetensorError, OSError, ValueError) as error:
        with file.open("rb") as stream:
            begin = stream.read(4)
        if begin.startswith(b"\x80") or begin == b"PK\x03\x04":
            raise CheckpointError(f"{file}: is a pickle, which is not opened") from error
        raise CheckpointError(f"{file}: is no safetensors file: {_line(error)}") from error


def _line(error: BaseException) -> str:
    """An error's message on one line."""
    return " ".join(str(error).split()) or type(error).__name__
