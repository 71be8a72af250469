"""``python -m sb3_ext.attack``."""

from __future__ import annotations

import sys

from sb3_ext.runs.command import start

if __name__ == "__main__":
    sys.exit(start("attack", "sb3_ext.studies.attack.cli"))
