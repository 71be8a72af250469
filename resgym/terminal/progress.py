"""Progress lines of long commands."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable


def progress_lines() -> Callable[[str], None]:
    """Return a function that shows a line on stderr, at most once a second, on a terminal only."""
    last = -1.0

    def show(line: str) -> None:
        nonlocal last
        if sys.stderr.isatty() and (now := time.monotonic()) - last >= 1.0:
            last = now
            print(line, file=sys.stderr, flush=True)

    return show
