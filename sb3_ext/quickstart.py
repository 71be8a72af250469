"""``python -m sb3_ext.quickstart``."""

from sb3_ext.runs.command import start

if __name__ == "__main__":
    raise SystemExit(start("quickstart", "sb3_ext.training.quickstart"))
