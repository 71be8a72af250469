"""Rates, measured so that they can be checked: `python -m benchmarks.run`."""
