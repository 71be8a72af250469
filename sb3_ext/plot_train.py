"""``python -m sb3_ext.plot_train``: learning curves, with the flags of rl_zoo3.

Example:
    python -m sb3_ext.plot_train -a ddqn -e HironakaHost -f logs -o curve.png
"""

from __future__ import annotations

import sys

from sb3_ext.runs.command import start

if __name__ == "__main__":
    sys.exit(start("plot_train", "sb3_ext.training.zoo_scripts", "plot_train"))
