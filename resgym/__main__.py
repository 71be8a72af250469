"""``python -m resgym``: the command ``resgym``."""

import sys

from resgym.cli import main

if __name__ == "__main__":
    sys.exit(main())
