"""Results as JSON: written as a whole, with a digest that shows every later change."""

from __future__ import annotations

import hashlib
import json
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
