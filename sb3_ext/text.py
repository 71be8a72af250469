"""``python -m sb3_ext.text``."""

from sb3_ext.runs.command import start

if __name__ == "__main__":
    raise SystemExit(start("text", "sb3_ext.studies.text.cli"))
