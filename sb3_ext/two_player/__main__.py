"""``python -m sb3_ext.two_player``."""

from __future__ import annotations

import sys

from sb3_ext.runs.command import start

if __name__ == "__main__":
    sys.exit(start("two_player", "sb3_ext.two_player.cli"))
