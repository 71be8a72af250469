"""The games as Gymnasium environments."""

from typing import TYPE_CHECKING

from resgym.lazy import lazy_names

if TYPE_CHECKING:
    from resgym.envs.one_seat import AlternatingPlayers
    from resgym.envs.registration import ENV_IDS, register_envs
    from resgym.envs.single import HironakaAgentEnv, HironakaEnv, HironakaHostEnv
    from resgym.envs.two_player import HironakaVectorEnv
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "one_seat": "AlternatingPlayers",
            "registration": "ENV_IDS register_envs",
            "single": "HironakaAgentEnv HironakaEnv HironakaHostEnv",
            "two_player": "HironakaVectorEnv",
        },
    )

__all__ = [
    "ENV_IDS",
    "AlternatingPlayers",
    "HironakaAgentEnv",
    "HironakaEnv",
    "HironakaHostEnv",
    "HironakaVectorEnv",
    "register_envs",
]
