"""``python -m sb3_ext.record_video``: films a trained model, with the flags of rl_zoo3.

Example:
    python -m sb3_ext.record_video --algo ddqn --env resgym/HironakaHost-v0 -f logs -n 40
"""

from __future__ import annotations

import sys

from sb3_ext.training.zoo_scripts import record_video

if __name__ == "__main__":
    sys.exit(record_video(sys.argv[1:]))
