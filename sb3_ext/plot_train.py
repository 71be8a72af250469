"""``python -m sb3_ext.plot_train``: learning curves, with the flags of rl_zoo3.

Example:
    python -m sb3_ext.plot_train -a ddqn -e HironakaHost -f logs -o curve.png
"""

from __future__ import annotations

import sys

from sb3_ext.training.zoo_scripts import plot_train

if __name__ == "__main__":
    sys.exit(plot_train(sys.argv[1:]))
