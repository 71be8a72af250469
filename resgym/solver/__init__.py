"""Provably optimal play: values, best responses, labels of many positions, optimal players."""
