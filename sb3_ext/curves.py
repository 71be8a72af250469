"""``python -m sb3_ext.curves``."""

from __future__ import annotations

import sys

from sb3_ext.training.curves import main

if __name__ == "__main__":
    sys.exit(main())
