"""``python -m sb3_ext.two_player``."""

from __future__ import annotations

import sys

from sb3_ext.two_player.cli import main

if __name__ == "__main__":
    sys.exit(main())
