"""Provably optimal play: values, best responses, labels of positions, optimal players."""
