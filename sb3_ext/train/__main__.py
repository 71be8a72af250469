"""``python -m sb3_ext.train --algo ddqn --env resgym/HironakaHost-v0 --progress``."""

from sb3_ext.runs.command import start

if __name__ == "__main__":
    raise SystemExit(start("train", "sb3_ext.train.train:main"))
