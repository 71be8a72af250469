"""Players for both seats: the protocol, scripted hosts and agents, and the registry of names."""

from typing import TYPE_CHECKING

from resgym.lazy import lazy_names

if TYPE_CHECKING:
    from resgym.players.asking import Mixture, ask_exactly, ask_player, make_mixture, player_name
    from resgym.players.networks import RecurrentPlayer, ScoringPlayer
    from resgym.players.registry import (
        CallablePlayer,
        Player,
        agent_names,
        host_names,
        make_agent,
        make_host,
        own_attribute,
        resolve_player,
        rows_of,
    )
    from resgym.players.scripted import (
        ChooseFirstAgent,
        ChooseLastAgent,
        GreedyPointsAgent,
        RandomAgent,
        ZeillingerHost,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "CallablePlayer",
    "ChooseFirstAgent",
    "ChooseLastAgent",
    "GreedyPointsAgent",
    "Mixture",
    "Player",
    "RandomAgent",
    "RecurrentPlayer",
    "ScoringPlayer",
    "ZeillingerHost",
    "agent_names",
    "ask_exactly",
    "ask_player",
    "host_names",
    "make_agent",
    "make_host",
    "make_mixture",
    "own_attribute",
    "player_name",
    "resolve_player",
    "rows_of",
]
