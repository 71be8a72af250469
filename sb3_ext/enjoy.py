"""``python -m sb3_ext.enjoy``: rl_zoo3's enjoy with this project's algorithms and environments.

Example:
    python -m sb3_ext.enjoy --algo ddqn --env resgym/HironakaHost-v0 --no-render
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from sb3_ext.training.zoo import run_zoo, take_trust

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """Plays a trained model; returns the exit code (2 with one line on stderr for bad input)."""
    trust, rest = take_trust("enjoy", arguments)
    return run_zoo("enjoy", rest, trust=trust)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
