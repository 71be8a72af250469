"""Seats a learner in one role and lets players answer in the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from resgym.envs.arguments import parse_integers
from resgym.envs.two_player import HironakaVectorEnv
from resgym.envs.vector_env import TensorVectorEnv
from resgym.game.episode import answers_of_agents
from resgym.game.rng import RowRandom
from resgym.game.spec import Role
from resgym.game.stepping import EpisodeState
from resgym.players import (
    MixedPlayer,
    Mixture,
    Player,
    ask_player,
    ask_players,
    compiled_name,
    make_mixture,
    player_name,
    resolve_player,
)
from resgym.players.base import check_role


class AlternatingPlayers(TensorVectorEnv):
    """One-seat view of a `HironakaVectorEnv`: a step is a whole move.

    Seat ``host`` (``resgym/HironakaHost-v0``): action ``Discrete(2^D - D - 1)``, an axis set;
    observation float32 [N, P, D], the points.

    Seat ``agent`` (``resgym/HironakaAgent-v0``): action ``Discrete(D)``, an axis of the observed
    set; observation ``points`` float32 [N, P, D] and ``coords`` int8 [N, D], the set that the host
    has named, which is the legal-action mask at once and the set that will be played.

    ``max_episode_steps`` of the wrapped environment counts half-moves, so an episode here lasts at
    most half as many steps.
    """

    def __init__(self, env: HironakaVectorEnv, seat: Role = "host", opponent: Any = None) -> None:
        """Makes the view; the games are its own, and start at its first reset.

        Args:
            env: the two-seat environment. Its game, reward, limits and modes carry over.
            seat: the learner's role.
            opponent: who answers: a player's name, a `Player`, a callable, a saved model's path;
                or several, see `set_opponent`. The default is ``random``.

        Raises:
            ValueError, TypeError: the seat or an opponent is none.
        """
        if not isinstance(env, HironakaVectorEnv):
            raise TypeError(f"env must be a HironakaVectorEnv, got {type(env).__name__}")
        seat = check_role(seat, "seat")
        limit = env.plan.max_episode_steps
        plan = replace(
            env.plan, seat=seat, max_episode_steps=None if limit is None else (limit + 1) // 2
        )
        self.all_actions_legal = seat == "host" and plan.spec.rule != "polyhedra"
        super().__init__(
            *(env.num_envs, plan, env.backend, env.device, env.form), render_mode=env.render_mode
        )
        self.env = env
        self.seat: Role = seat
        self.opponent_role: Role = "agent" if seat == "host" else "host"
        self.set_opponent("random" if opponent is None else opponent)

    def set_opponent(self, opponent: Any, assignment: Any = None) -> None:
        """Replaces the opponent, from the next move on.

        Args:
            opponent: one opponent; or a sequence of them, to whom the games are dealt out in turn
                (N of them: one per row); or a mapping of opponents to weights. See `Mixture`.
            assignment: int [N], which of a sequence plays each row, whatever the episode.

        Raises:
            ValueError, TypeError: an opponent is none, or the assignment does not fit.
        """
        self._moves()  # those that the last opponent answered
        role, spec = self.opponent_role, self.plan.spec
        several = isinstance(opponent, Mapping) or (
            isinstance(opponent, Sequence) and not isinstance(opponent, str)
        )
        if assignment is not None and (not several or isinstance(opponent, Mapping)):
            raise ValueError("assignment needs a sequence of opponents")
        given = list(opponent) if several else [opponent]
        name, chosen = None, opponent
        if not several:
            chosen = resolve_player(opponent, role, spec)
            name = compiled_name(chosen)
        elif assignment is None:
            chosen = make_mixture(opponent, role, spec)
        else:
            players = make_mixture(opponent, role, spec).players
            rows = parse_integers("assignment", assignment, self.num_envs, self.device)
            chosen = MixedPlayer(players, rows)
        self._opponent: Player | Mixture = chosen
        seated = chosen.players if several else [chosen]
        self._names = {id(p): player_name(each) for p, each in zip(seated, given, strict=True)}
        self.plan = replace(self.plan, opponent=name)

    @property
    def opponents(self) -> list[Player]:
        """The distinct players that answer."""
        opponent = self._opponent
        players: Sequence[Player]
        players = opponent.players if isinstance(opponent, (Mixture, MixedPlayer)) else [opponent]
        return list({id(player): player for player in players}.values())

    def _ask(
        self, games: EpisodeState, coords: Tensor | None, rng: RowRandom, rows: Tensor | None
    ) -> Tensor:
        # Who is asked may keep what it was shown, also if it fails.
        self._games = self._games.tensors()
        position, opponent, hosts_turn = games.position, self._opponent, coords is None
        if rows is not None:
            position, rng = position.select(rows), rng.select(rows)
            coords = None if coords is None else coords[rows]
        if isinstance(opponent, Mixture):
            seats = opponent.seats(games.episode)
            seats = seats if rows is None else seats[rows]
            answers = ask_players(opponent.distinct, seats, position, coords, rng, rows)
        else:
            answers = ask_player(opponent, position, coords, rng, rows)
        if not hosts_turn:
            self._answers = answers
        return answers

    def _answers_to(self, before: EpisodeState, actions: Tensor) -> Tensor | None:
        if self.seat == "agent" or self.plan.opponent is None:
            return self._answers
        # One that answers in compiled code is asked again.
        known = actions.clamp(0, self.plan.num_actions - 1)
        playing = (known == actions) & ~before.ended
        return answers_of_agents(self.plan, before, known, playing, self._ask)

    def __repr__(self) -> str:
        names = ", ".join(self._names.values())
        return f"{super().__repr__()[:-1]}, seat={self.seat}, opponent={names})"

    def _seats(self, row: int) -> str:
        player = self._opponent
        if isinstance(player, Mixture):
            player = player.distinct[int(player.seats(self.games.episode)[row])]
        elif isinstance(player, MixedPlayer):
            player = player.players[int(player.assignment[row])]
        other = f"{self.opponent_role}: {self._names.get(id(player), player_name(player))}"
        return f"host: you, {other}" if self.seat == "host" else f"{other}, agent: you"

    def close_extras(self, **kwargs: Any) -> None:
        """Closes the wrapped environment too."""
        self.env.close()
