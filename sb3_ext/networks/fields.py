"""Networks as fields of a configuration."""

from __future__ import annotations

from typing import Annotated, Any

from sb3_ext.config.sections import checked
from sb3_ext.networks.mlp import expand_net_arch

__all__ = ["NetArch"]


def _net_arch(value: Any) -> Any:
    try:
        expand_net_arch(value)
    except (TypeError, ValueError) as error:
        raise ValueError(str(error).removeprefix("net_arch")) from None
    return value


NetArch = Annotated[list[Any], checked(_net_arch)]
"""The ``net_arch`` language."""
