"""``python -m sb3_ext.attack``."""

from sb3_ext.runs.command import start

if __name__ == "__main__":
    raise SystemExit(start("attack", "sb3_ext.attack.attack:main"))
