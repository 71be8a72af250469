"""Provably optimal play: values, best responses, labels of many positions, optimal players."""

from __future__ import annotations
