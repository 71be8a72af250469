"""The files of one checkpoint directory: how they are written, checked and read.

What they are for is said in `sb3_ext.checkpoints.checkpoint`, also the place to import from.

A part of a state is nested dictionaries, with strings as keys, and lists of tensors, None, numbers,
booleans and strings; tuples come back as lists. In ``state.json`` a tensor is replaced by
``{"$tensor": name}`` and a float that JSON lacks by ``{"$float": "inf"}``.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor

from sb3_ext.checkpoints.durable_files import check_content, file_digest, sync
from sb3_ext.config.arguments import REFUSALS
from sb3_ext.config.checks import one_line
from sb3_ext.runs.provenance import versions

SCHEMA = 1
"""Version of the layout of a checkpoint; raised when a reader of the old one would misread it."""

MANIFEST, STATE, SUFFIX = "manifest.json", "state.json", ".safetensors"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
"""What directories, parts and files may be called."""

_DIGEST = re.compile(r"[0-9a-f]{64}")
_MANIFEST_BYTES = 1 << 20
_TENSOR, _FLOAT = "$tensor", "$float"
_WHOLE = "tensor"


class CheckpointError(ValueError):
    """A checkpoint is missing, damaged, or does not fit; one line naming file and field."""


class CheckpointWarning(UserWarning):
    """Something about a checkpoint that did not stop the work."""


@contextmanager
def errors_named(place: str, kind: type[ValueError] = CheckpointError) -> Iterator[None]:
    """Turns whatever malformed data raises into one error that begins with its place."""
    try:
        yield
    except KeyError as error:
        raise kind(f"{place}: {error} is missing") from error
    except (*REFUSALS, OSError) as error:
        raise kind(f"{place}: {one_line(error)}") from error


def split_state(value: Any, field: str) -> tuple[Any, dict[str, Tensor]]:
    """Data for JSON, and the tensors by the names that it refers to them with.

    Args:
        value: a part of a state, see the module.
        field: how errors call it.

    Raises:
        TypeError: a value or a key is of another type; names the field.
        ValueError: a key begins with ``$``.
    """
    tensors: dict[str, Tensor] = {}

    def visit(item: Any, path: tuple[str, ...]) -> Any:
        if isinstance(item, Tensor):
            # As JSON pointers (RFC 6901) escape the separator.
            escaped = [key.replace("~", "~0").replace("/", "~1") for key in path]
            name = "/".join(escaped) or _WHOLE
            tensors[name] = item
            return {_TENSOR: name}
        # By exact type: a subclass, such as NumPy's float64 or an enum, would come back as another.
        if item is None or type(item) in (bool, int, str):
            return item
        if type(item) is float:
            return item if math.isfinite(item) else {_FLOAT: repr(item)}
        where = "/".join((field, *path))
        if isinstance(item, Mapping):
            for key in item:
                if type(key) is not str:
                    raise TypeError(f"{where}: keys must be strings, got {key!r}")
                if key.startswith("$"):
                    raise ValueError(f"{where}: keys must not begin with '$', got {key!r}")
            return {key: visit(entry, (*path, key)) for key, entry in item.items()}
        if isinstance(item, (list, tuple)):
            return [visit(entry, (*path, str(i))) for i, entry in enumerate(item)]
        raise TypeError(
            f"{where}: a state holds tensors, numbers, strings, None, dictionaries and lists, got"
            f" {type(item).__name__}"
        )

    return visit(value, ()), tensors


def join_state(plain: Any, tensors: Mapping[str, Tensor], field: str) -> Any:
    """Puts together what `split_state` took apart.

    Raises:
        ValueError: a reference is malformed or names no tensor, or nothing refers to a tensor.
    """
    used: set[str] = set()

    def visit(item: Any, where: str) -> Any:
        if isinstance(item, list):
            return [visit(entry, f"{where}/{i}") for i, entry in enumerate(item)]
        if not isinstance(item, dict):
            return item
        if _TENSOR in item:
            name = item[_TENSOR]
            if len(item) != 1 or not isinstance(name, str) or name not in tensors:
                raise ValueError(f"{where}: there is no tensor {name!r}")
            used.add(name)
            return tensors[name]
        if _FLOAT in item:
            if item not in ({_FLOAT: "inf"}, {_FLOAT: "-inf"}, {_FLOAT: "nan"}):
                raise ValueError(f"{where}: {item} is no number")
            return float(item[_FLOAT])
        return {key: visit(entry, f"{where}/{key}") for key, entry in item.items()}

    state = visit(plain, field)
    unused = sorted(set(tensors) - used)
    if unused:
        raise ValueError(f"{field}: nothing refers to the tensor {unused[0]!r}")
    return state


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
                raise OSError(f"{file}: cannot be written: {one_line(error)}") from error
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
    with errors_named(f"{file}: cannot be read"), file.open("rb") as stream:
        content = stream.read(_MANIFEST_BYTES + 1)
        text = content.decode("utf-8")
        document = json.loads(text)
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


def read_state(path: Path, files: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The plain halves of all parts, by name."""
    file = path / STATE
    check_content(file, files[STATE], CheckpointError)
    with errors_named(f"{file}: cannot be read"):
        document = json.loads(file.read_text(encoding="utf-8"))
    parts = document.get("parts") if isinstance(document, dict) else None
    if not isinstance(parts, dict) or not all(NAME.fullmatch(part) for part in parts):
        raise CheckpointError(f"{file}: parts: missing or malformed")
    return parts


def read_part(path: Path, part: str, plain: Any, files: Mapping[str, dict[str, Any]]) -> Any:
    """One part, its tensors put back to where ``plain`` refers to them."""
    name = part + SUFFIX
    tensors: dict[str, Tensor] = {}
    if name in files:
        check_content(path / name, files[name], CheckpointError)
        tensors = dict(_read_tensors(path / name))
    with errors_named(str(path / STATE)):
        whole = join_state(plain, tensors, part)
    return whole


def _read_tensors(file: Path) -> Iterator[tuple[str, Tensor]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="pt") as opened:
            for name in opened.keys():  # noqa: SIM118 - not a dictionary, it has no iterator
                yield name, opened.get_tensor(name)
    except (SafetensorError, OSError, ValueError) as error:
        with file.open("rb") as stream:
            begin = stream.read(4)
        if begin.startswith(b"\x80") or begin == b"PK\x03\x04":
            raise CheckpointError(f"{file}: is a pickle, which is not opened") from error
        raise CheckpointError(f"{file}: is no safetensors file: {one_line(error)}") from error
