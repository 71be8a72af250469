"""Two roles that learn against each other: `HostAgentTrainer("small").train(1000)`.

`docs/two_player.md` explains it; the command line is `python -m sb3_ext.two_player`. Its names are
imported when one is first asked for, so that the command line answers signals before.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sb3_ext.two_player.names import *  # noqa: F403


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        names = vars(importlib.import_module("sb3_ext.two_player.names"))
        if name in names:
            return names[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
