"""Players for both seats: the protocol, scripted hosts and agents, and the registry of names."""

from typing import TYPE_CHECKING

from resgym.lazy import lazy_names

if TYPE_CHECKING:
    from resgym.players.asking import ask_exactly, ask_player, player_name
    from resgym.players.base import CallablePlayer, Player, own_attribute, rows_of
    from resgym.players.checking import check_player
    from resgym.players.mixture import Mixture, make_mixture
    from resgym.players.recurrent import RecurrentPlayer
    from resgym.players.registry import (
        agent_names,
        host_names,
        make_agent,
        make_host,
        resolve_player,
    )
    from resgym.players.scoring import ScoringPlayer
    from resgym.players.scripted import (
        ChooseFirstAgent,
        ChooseLastAgent,
        GreedyPointsAgent,
        RandomAgent,
    )
    from resgym.players.zeillinger import ZeillingerHost
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
    "check_player",
    "host_names",
    "make_agent",
    "make_host",
    "make_mixture",
    "own_attribute",
    "player_name",
    "resolve_player",
    "rows_of",
]
