"""Trains any algorithm of SB3 from a file: `python -m sb3_ext.train`."""
