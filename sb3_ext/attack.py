"""``python -m sb3_ext.attack``."""

from __future__ import annotations

import sys

from sb3_ext.studies.attack.cli import main

if __name__ == "__main__":
    sys.exit(main())
