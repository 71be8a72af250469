"""``python -m sb3_ext.two_player``."""

from sb3_ext.runs.command import start

if __name__ == "__main__":
    raise SystemExit(start("two_player", "sb3_ext.two_player.job:main"))
