"""The games as Gymnasium environments."""

from typing import TYPE_CHECKING

from resgym.lazy import lazy_names

if TYPE_CHECKING:
    from resgym.envs.environments import AlternatingPlayers, HironakaEnv, HironakaVectorEnv
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["AlternatingPlayers", "HironakaEnv", "HironakaVectorEnv"]
