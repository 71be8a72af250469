"""``python -m sb3_ext.quickstart``."""

from __future__ import annotations

import sys

from sb3_ext.runs.command import start

if __name__ == "__main__":
    sys.exit(start("quickstart", "sb3_ext.training.quickstart"))
