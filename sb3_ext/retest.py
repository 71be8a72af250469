"""``python -m sb3_ext.retest``."""

from sb3_ext.runs.command import start

if __name__ == "__main__":
    raise SystemExit(start("retest", "sb3_ext.studies.retest"))
