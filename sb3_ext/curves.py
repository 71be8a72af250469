"""``python -m sb3_ext.curves``."""

from __future__ import annotations

import sys

from sb3_ext.runs.command import start

if __name__ == "__main__":
    sys.exit(start("curves", "sb3_ext.training.curves"))
