"""Results as JSON: written as a whole, with a digest that shows every later change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sb3_ext.checkpoints.durable_files import write_text_durably


def digest_of(*values: Any) -> str:
    """SHA-256 of arrays (content, type and shape) and plain data."""
    digest = hashlib.sha256()
    for value in values:
        if isinstance(value, np.ndarray):
            digest.update(f"{value.dtype.str}{value.shape}".encode())
            digest.update(np.ascontiguousarray(value).tobytes())
        else:
            digest.update(json.dumps(value, sort_keys=True).encode())
    return digest.hexdigest()


def write_json(path: Path, data: Any) -> None:
    """Replaces a file of plain data as a whole."""
    write_text_durably(path, json.dumps(data, indent=1) + "\n")


def sealed(data: Mapping[str, Any]) -> dict[str, Any]:
    """The same data as it is read back from JSON, with its digest as ``sha256``."""
    plain: dict[str, Any] = json.loads(json.dumps(data))
    plain.pop("sha256", None)
    return {**plain, "sha256": digest_of(plain)}


def check_seal(data: Any) -> dict[str, Any]:
    """What was given to `sealed`.

    Raises:
        ValueError: the data have no digest, or were changed after they were sealed.
    """
    if not isinstance(data, dict) or "sha256" not in data:
        raise ValueError("sha256 is missing")
    if sealed(data) != data:
        raise ValueError("sha256: was changed after it was written")
    return {key: value for key, value in data.items() if key != "sha256"}
