"""Hironaka's polyhedral game as exact, batched Gymnasium environments.

Importing the package registers ``resgym/Hironaka-v0``, ``resgym/HironakaHost-v0`` and
``resgym/HironakaAgent-v0``.
"""

from typing import TYPE_CHECKING

from resgym.envs.registration import register_envs
from resgym.lazy import lazy_names

if TYPE_CHECKING:
    from resgym.envs.environments import AlternatingPlayers, HironakaVectorEnv
    from resgym.game.rng import RowRandom, Stream
    from resgym.game.spec import GameSpec
    from resgym.game.state import GameState, register_rule, state_from_points
    from resgym.game.stepping import Transition, register_reward
    from resgym.geometry.examine import examine
    from resgym.measure.exploitability import Exploitability, exploitability
    from resgym.measure.rho import CrossPlay, RhoResult, cross_play, rho
    from resgym.players.registry import Player, make_agent, make_host, register_agent, register_host
    from resgym.polynomials.monomials import Exponents
    from resgym.polynomials.parse import ParseError, parse
    from resgym.polynomials.singularities import random_family, singularity, singularity_names
    from resgym.solver.solution import Solution
    from resgym.solver.solve import solve
    from resgym.trees.growth import ResolutionTree, resolution_tree
else:
    __getattr__, __dir__ = lazy_names(__name__)

__version__ = "0.1.0"

__all__ = [
    "AlternatingPlayers",
    "CrossPlay",
    "Exploitability",
    "Exponents",
    "GameSpec",
    "GameState",
    "HironakaVectorEnv",
    "ParseError",
    "Player",
    "ResolutionTree",
    "RhoResult",
    "RowRandom",
    "Solution",
    "Stream",
    "Transition",
    "cross_play",
    "examine",
    "exploitability",
    "make_agent",
    "make_host",
    "parse",
    "random_family",
    "register_agent",
    "register_envs",
    "register_host",
    "register_reward",
    "register_rule",
    "resolution_tree",
    "rho",
    "singularity",
    "singularity_names",
    "solve",
    "state_from_points",
]

register_envs()
