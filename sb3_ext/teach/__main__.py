"""``python -m sb3_ext.teach --config host --out runs/host``."""

from sb3_ext.runs.command import start

if __name__ == "__main__":
    raise SystemExit(start("teach", "sb3_ext.teach.teach:main"))
