"""The games as Gymnasium environments."""

from resgym.envs.one_seat import AlternatingPlayers
from resgym.envs.registration import ENV_IDS, register_envs
from resgym.envs.single import HironakaAgentEnv, HironakaEnv, HironakaHostEnv
from resgym.envs.two_player import HironakaVectorEnv

__all__ = [
    "ENV_IDS",
    "AlternatingPlayers",
    "HironakaAgentEnv",
    "HironakaEnv",
    "HironakaHostEnv",
    "HironakaVectorEnv",
    "register_envs",
]
