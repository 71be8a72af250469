"""Players for both seats: the protocol, scripted hosts and agents, and the registry."""

from typing import TYPE_CHECKING

from resgym.lazy import lazy_names

if TYPE_CHECKING:
    from resgym.players.asking import ask_player, ask_players, player_name
    from resgym.players.base import CallablePlayer, Player, own_attribute, rows_of
    from resgym.players.checking import check_player
    from resgym.players.mixture import Mixture, make_mixture
    from resgym.players.recurrent import RecurrentPlayer
    from resgym.players.registry import (
        agent_names,
        host_names,
        make_agent,
        make_host,
        register_agent,
        register_host,
        resolve_player,
    )
    from resgym.players.scoring import ScoringPlayer
    from resgym.players.scripted import (
        AllCoordHost,
        ChooseFirstAgent,
        ChooseLastAgent,
        GreedyPointsAgent,
        RandomAgent,
        RandomHost,
        RandomPairHost,
    )
    from resgym.players.spivakovsky import SpivakovskyHost, WeakSpivakovskyHost
    from resgym.players.zeillinger import ZeillingerHost, ZeillingerLexHost
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "asking": "ask_player ask_players player_name",
            "base": "CallablePlayer Player own_attribute rows_of",
            "checking": "check_player",
            "mixture": "Mixture make_mixture",
            "recurrent": "RecurrentPlayer",
            "registry": "agent_names host_names make_agent make_host"
            " register_agent register_host resolve_player",
            "scoring": "ScoringPlayer",
            "scripted": "AllCoordHost ChooseFirstAgent ChooseLastAgent GreedyPointsAgent"
            " RandomAgent RandomHost RandomPairHost",
            "spivakovsky": "SpivakovskyHost WeakSpivakovskyHost",
            "zeillinger": "ZeillingerHost ZeillingerLexHost",
        },
    )

__all__ = [
    "AllCoordHost",
    "CallablePlayer",
    "ChooseFirstAgent",
    "ChooseLastAgent",
    "GreedyPointsAgent",
    "Mixture",
    "Player",
    "RandomAgent",
    "RandomHost",
    "RandomPairHost",
    "RecurrentPlayer",
    "ScoringPlayer",
    "SpivakovskyHost",
    "WeakSpivakovskyHost",
    "ZeillingerHost",
    "ZeillingerLexHost",
    "agent_names",
    "ask_player",
    "ask_players",
    "check_player",
    "host_names",
    "make_agent",
    "make_host",
    "make_mixture",
    "own_attribute",
    "player_name",
    "register_agent",
    "register_host",
    "resolve_player",
    "rows_of",
]
