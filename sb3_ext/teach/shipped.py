"""The players that come with the package: ``taught``, ``played`` and ``any``.

They are the files ``.safetensors`` beside this one, see `sb3_ext.checkpoints.models`; such a
file is ``model.safetensors`` of a model card with ``--half``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from resgym import GameState, Player, RowRandom
from resgym.game.spec import MAX_DIMENSION, Role
from resgym.players import GreedyPointsAgent, ScoringPlayer, ZeillingerHost
from sb3_ext.checkpoints.models import read_policy
from sb3_ext.config.checks import check_count
from sb3_ext.minimax import ValueAgent, ValueHost
from sb3_ext.networks.mlp import action_scores, seat_of

_HERE = Path(__file__).parent
SHIPPED = {3: _HERE / "taught_host.safetensors", 4: _HERE / "taught_host_4.safetensors"}
AGENT = _HERE / "taught_agent.safetensors"
PLAYED = {3: _HERE / "played_host.safetensors"}
ANY = dict.fromkeys(range(2, MAX_DIMENSION + 1), _HERE / "any_host.safetensors")


class _Shipped:
    """Plays what a network thinks best.

    Attributes:
        files: the networks by number of axes.
        fallback: who answers in other numbers of axes.
    """

    role: ClassVar[Role]
    name = "taught"
    files: ClassVar[Mapping[int, Path]]
    fallback: ClassVar[type[Player]]

    def __init__(self) -> None:
        self._fallback = self.fallback()
        for file in {*self.files.values()}:  # one that is missing or damaged is found now
            _policy(torch.device("cpu"), file)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`."""
        file = self.files.get(state.dimension)
        player = self._player(_policy(state.device, file), state) if file else self._fallback
        return player.act(state, coords, rng)

    def _player(self, policy: Any, state: GameState) -> Player:
        """Who plays with a network, in games of this size."""
        seen, (given, dimension) = seat_of(policy)[1], state.points.shape[1:]
        return ScoringPlayer(
            self.role,
            partial(action_scores, policy),
            (max(len(seen.high), given), dimension),
            scale_observation=seen.high.max() <= 1,
            device=state.device,
        )


class TaughtHost(_Shipped):
    """Play the best move of a network trained on the optimal moves of small positions.

    See docs/teaching.md. It knows three and four axes; in any other number of them
    `ZeillingerHost` answers.
    """

    role, files, fallback = "host", SHIPPED, ZeillingerHost


class TaughtAgent(_Shipped):
    """As `TaughtHost`, for the agent; in other numbers of axes `GreedyPointsAgent` answers."""

    role, files, fallback = "agent", {3: AGENT}, GreedyPointsAgent


class PlayedHost(TaughtHost):
    """Play the best move of a network that learned by play, without labels.

    See docs/howto/win.md. It knows three axes; in any other number of them `ZeillingerHost`
    answers.

    Args:
        lookahead: exact moves of both players before the network is asked, see `ValueHost`.
    """

    name, files = "played", PLAYED

    def __init__(self, lookahead: int = 0) -> None:
        super().__init__()
        self.lookahead = check_count("lookahead", lookahead, low=0)

    def _player(self, policy: Any, state: GameState) -> Player:
        if self.lookahead:
            return ValueHost(policy.q_net, self.lookahead)
        return super()._player(policy, state)


class PlayedAgent(TaughtAgent):
    """Leave the host of `PlayedHost` what is worth least to it.

    In other numbers of axes `GreedyPointsAgent` answers.
    """

    name, files = "played", PLAYED

    def _player(self, policy: Any, state: GameState) -> Player:
        return ValueAgent(partial(action_scores, policy))


class AnyHost(PlayedHost):
    """Play the best move of one network for every number of axes, learned by play alone.

    See docs/howto/win.md. The names of axes and points make no difference to it.

    Args:
        lookahead: as in `PlayedHost`.
    """

    name, files = "any", ANY


class AnyAgent(PlayedAgent):
    """Leave the host of `AnyHost` what is worth least to it, in every number of axes."""

    name, files = "any", ANY


@lru_cache(maxsize=16)
def _policy(device: torch.device, path: Path) -> Any:
    with torch.random.fork_rng(devices=[]):  # new networks draw weights before they are read
        return read_policy(path, device)
