"""Learning rates and exploration rates as functions of how far training has come."""

from __future__ import annotations
