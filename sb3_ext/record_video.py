"""``python -m sb3_ext.record_video --algo ddqn --env resgym/HironakaHost-v0 -f logs``."""

from sb3_ext.runs.command import start

if __name__ == "__main__":
    raise SystemExit(start("record_video", "sb3_ext.training.play", "record_video"))
