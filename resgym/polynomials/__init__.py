"""Input: polynomials and named singularities as exponents, and monomials as text."""

from __future__ import annotations
