"""``python -m sb3_ext.convert``."""

from sb3_ext.runs.command import start

if __name__ == "__main__":
    raise SystemExit(start("convert", "sb3_ext.studies.convert"))
