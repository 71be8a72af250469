"""The rule and the step as Triton kernels."""

from __future__ import annotations
