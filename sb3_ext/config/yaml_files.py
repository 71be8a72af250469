"""Configuration files: plain YAML, in which no key of a mapping stands twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

__all__ = ["read_yaml"]

_MERGE = "tag:yaml.org,2002:merge"


class _Loader(yaml.SafeLoader):
    """The safe loader, which knows plain data only; unlike it, as YAML asks, each key once."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Composed before `<<` is resolved, whose keys may be set again."""
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            name = (key.tag, str(key.value))
            if name in seen and key.tag != _MERGE:
                raise yaml.composer.ComposerError(
                    None, None, f"the key {key.value!r} stands twice in one mapping", key.start_mark
                )
            seen.add(name)
        return node


def read_yaml(path: Path) -> Any:
    """What a file holds, as plain data; nothing in it is evaluated.

    Raises:
        ValueError: the file cannot be read, is no YAML, or has a key twice; one line.
    """
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)  # a safe one
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: cannot be read: {error}") from None
    except yaml.YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        where = "" if mark is None else f" at line {mark.line + 1}"
        why = "" if not problem else f": {' '.join(str(problem).split())}"
        raise ValueError(f"{path}: not readable as plain YAML{where}{why}") from None
