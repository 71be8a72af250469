"""The rule and the step compiled for the CPU by numba, one game at a time."""
