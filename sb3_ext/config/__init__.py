"""Configuration: sections, files, command-line changes, checks and registries."""

from __future__ import annotations
