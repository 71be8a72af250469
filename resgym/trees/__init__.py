"""Resolution trees: all games that a host can be led into, as data, text and pictures."""

from __future__ import annotations
