"""Types that many functions take and give."""

from typing import Any

from resgym.files import StrPath as StrPath

Arguments = dict[str, Any]
"""Keyword arguments by name."""

Data = dict[str, Any]
"""Plain data by name, as a file of JSON or YAML holds it."""

Info = dict[str, Any]
"""What an environment tells of a step, or of one row or episode."""

Metrics = dict[str, float]
"""Numbers that were measured, by name."""

StateDict = dict[str, Any]
"""What a checkpoint keeps of one thing: tensors and plain data by name."""
