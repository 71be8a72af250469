"""Interchangeable implementations of a step, all equal to the torch reference."""
