"""``python -m sb3_ext.enjoy --algo ddqn --env resgym/HironakaHost-v0 --no-render``."""

from sb3_ext.runs.command import start

if __name__ == "__main__":
    raise SystemExit(start("enjoy", "sb3_ext.train.play:enjoy"))
