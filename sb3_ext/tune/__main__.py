"""``python -m sb3_ext.tune train``."""

from sb3_ext.runs.command import start

if __name__ == "__main__":
    raise SystemExit(start("tune", "sb3_ext.tune.tune"))
