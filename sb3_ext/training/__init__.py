"""The entry points of packages that were installed before the folder was called ``train``."""
