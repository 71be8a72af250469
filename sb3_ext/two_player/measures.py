"""How good the players are: pairings on fixed starts, action counts, and the best so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sb3_ext.two_player.config import EvaluationSection
from sb3_ext.two_player.games import Game

__all__ = ["Evaluation", "Measures"]


@dataclass
class Evaluation:
    """One measurement of one version of the players.

    Attributes:
        step: steps of the trainer when it was made.
        versions: updates of each learning role at that time.
        values: the game's measure by pair, such as ``host-choose_first``.
        actions: how often each learning role took each action.
        scores: by learning role, the value that decides which version is best.
        improved: learning roles whose score was better than ever before.
        ratings: ratings of the roles, if there is a pool.
    """

    step: int
    versions: dict[str, int]
    values: dict[str, float]
    actions: dict[str, list[int]] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)
    improved: list[str] = field(default_factory=list)
    ratings: dict[str, float] = field(default_factory=dict)


class Measures:
    """Measures the players of a trainer.

    The starts are the same each time and owe nothing to the random numbers of training.

    Args:
        section: `evaluation` of the configuration.
        game: plays the games.
        players: one per role, looked up at each measurement.

    Attributes:
        best_scores: the best score of each role so far.
    """

    def __init__(self, section: EvaluationSection, game: Game, players: Mapping[str, Any]) -> None:
        self.section, self.game, self.players = section, game, players
        self.opponents = {
            role: {name: game.named_player(game.other(role), name) for name in names}
            for role, names in section.opponents.items()
        }
        self.best_scores: dict[str, float] = {}

    def evaluate(self, games: int | None = None, seed: int | None = None) -> dict[str, float]:
        """The measure of the two players against each other, and of each against its opponents.

        Args:
            games: games of each pair; None: as configured.
            seed: of the starts; None: as configured.

        Returns:
            Values by pair, such as ``host-agent`` and ``host-choose_first``.
        """
        games = self.section.games if games is None else games
        seed = self.section.seed if seed is None else seed
        pairs = {"-".join(self.game.roles): dict(self.players)}
        for role in self.game.roles:
            for name, player in self.opponents[role].items():
                pair = {**self.players, self.game.other(role): player}
                pairs[self._pair_name(role, name)] = pair
        return {
            name: self.game.evaluate(pair, games, seed, self.section.max_moves)
            for name, pair in pairs.items()
        }

    def _pair_name(self, role: str, opponent: str) -> str:
        return f"{role}-{opponent}" if role == self.game.roles[0] else f"{opponent}-{role}"

    def judge(self, evaluation: Evaluation) -> None:
        """Fill in scores, and which of them are the best so far.

        A score is the worst value over a role's scripted opponents: the lowest for the first role,
        who wants high values, the highest for the second.
        """
        for role in evaluation.versions:
            worst, sign = (min, 1) if role == self.game.roles[0] else (max, -1)
            names = [self._pair_name(role, name) for name in self.opponents[role]]
            if not names:
                continue
            score = evaluation.scores[role] = worst(evaluation.values[name] for name in names)
            if role not in self.best_scores or sign * score > sign * self.best_scores[role]:
                self.best_scores[role] = score
                evaluation.improved.append(role)
