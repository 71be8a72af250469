"""``python -m sb3_ext.curves``."""

from sb3_ext.runs.command import start

if __name__ == "__main__":
    raise SystemExit(start("curves", "sb3_ext.training.curves"))
