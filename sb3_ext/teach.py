"""``python -m sb3_ext.teach``."""

from __future__ import annotations

import sys

from sb3_ext.runs.command import start

if __name__ == "__main__":
    sys.exit(start("teach", "sb3_ext.studies.teach.cli"))
