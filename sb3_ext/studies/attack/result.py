"""What an attack found, as data and as text."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import PlainSerializer

from resgym.game.spec import Role
from resgym.measure.rho import RhoResult
from resgym.tables import text_table
from sb3_ext.config.sections import Section, checked


def _rho(value: Any) -> RhoResult:
    if isinstance(value, RhoResult):
        return value
    plain = {"histogram": [], **value}  # a table has none
    low, high = plain.pop("interval_95")
    return RhoResult(**plain, interval=(low, high))


Rho = Annotated[RhoResult, checked(_rho), PlainSerializer(RhoResult.to_dict)]
"""A measure that is written as `RhoResult.to_dict` gives it, and read from that."""


def picks_worst(role: Role) -> Any:
    """`min` for a host, `max` for an agent: the rho that is worst for it."""
    return min if role == "host" else max


def between(low: float, high: float) -> str:
    """Both ends of an interval of rho."""
    return f"{low:.4f} to {high:.4f}"


def ends(low: float, high: float, *, digits: int = 4) -> str:
    """What is known of a figure, as one number where both bounds are the same."""
    return " to ".join(dict.fromkeys(f"{value:.{digits}f}" for value in (low, high)))


class ExactResult(Section):
    """What a perfect responder reaches on some starts.

    A search that was given up leaves its start with a bound: the game has at least so many moves,
    and whether it ends is open. So there are two figures; they are one if nothing was given up.
    The optimum is the least depth, what a perfect host and a perfect agent make of the same starts.

    Attributes:
        role: the seat of the player under attack.
        lowest: rho if no open game ended before the cut, or, against an agent, before the least
            depth, which the optimal host needs at most.
        highest: rho if every open game ended as soon as its bound allows.
        given_up: starts whose search was given up.
        cut: starts on which the game is proved to go on beyond the limit, perhaps without end.
        starts: how many there are.
        optimum: rho of perfect play of both seats; at most this if some are not proved.
        unproved: starts whose optimum the solver did not prove; they count with their lower bounds.
        optimal: starts on which the figure is proved to be the optimum.
        largest_gap: moves between the two where they are farthest apart, of the proved starts; a
            game beyond the limit counts as cut there.
    """

    role: Role
    lowest: Rho
    highest: Rho
    given_up: int
    cut: int
    starts: int
    optimum: Rho
    optimal: int
    largest_gap: int
    unproved: int = 0

    @property
    def is_exact(self) -> bool:
        """Whether every start was settled."""
        return self.given_up == 0

    def __str__(self) -> str:
        rho, moves, optimum, share, gap, cut, given_up = self.figures()
        return (
            f"exact {rho} on {self.starts} starts, {moves} moves each, {cut} cut, {given_up} "
            f"searches given up; optimum {optimum} moves, reached on {share}, "
            f"missed by at most {gap}"
        )

    def figures(self) -> list[str]:
        """The cells of a table; rho and mean moves are ranges if a search was given up."""
        low, high = self.lowest, self.highest
        rho, moves = ends(low.rho, high.rho), ends(high.mean_length, low.mean_length, digits=2)
        optimum = f"{'at least ' if self.unproved else ''}{self.optimum.mean_length:.2f}"
        counts = map(str, (self.largest_gap, self.cut, self.given_up))
        return [rho, moves, optimum, f"{100 * self.optimal / self.starts:.1f} %", *counts]


class SeedResult(Section):
    """One trained responder.

    Attributes:
        seed: of its training.
        test: it against the player, on the test's starts.
        lookahead: the same with a rollout of every answer before each move; None without.
        best: its best version: updates, transitions, seconds, rho on the validation starts.
        history: all looks at it.
        updates: gradient updates made.
        transitions: moves played for training.
        parameters: numbers in its network.
        seconds: time taken.
    """

    seed: int
    test: Rho
    lookahead: Rho | None
    best: dict[str, Any]
    history: list[dict[str, Any]]
    updates: int
    transitions: int
    parameters: int
    seconds: float


class AttackResult(Section):
    """All responders of an attack, and the worst.

    For a host the worst is the lowest rho: a bound from above of what the host keeps against every
    agent, never a proof that it keeps so much. For an agent it is the highest, a bound from below.

    Attributes:
        player: name of the player under attack.
        role: its seat.
        fingerprint: what tells it apart, see `FrozenPlayer`.
        budget: the budget as plain data.
        trained: the responders that were trained.
        scripted: rho against every scripted responder.
        exact: what a perfect responder reaches, if that was searched.
    """

    player: str
    role: Role
    fingerprint: str
    budget: dict[str, Any]
    trained: list[SeedResult]
    scripted: dict[str, Rho]
    exact: ExactResult | None = None

    @property
    def responders(self) -> dict[str, RhoResult]:
        """Every responder's rho, the trained ones as ``seed 0`` and ``seed 0 with lookahead``.

        Where a proof took the place of all of them it stands here as ``proof``.
        """
        found = {}
        for each in self.trained:
            found[f"seed {each.seed}"] = each.test
            if each.lookahead is not None:
                found[f"seed {each.seed} with lookahead"] = each.lookahead
        proof = {"proof": self.exact.lowest} if self.exact else {}
        return {**found, **self.scripted} or proof

    @property
    def worst_responder(self) -> str:
        """The responder that did most."""
        found = self.responders
        worst: str = picks_worst(self.role)(found, key=lambda name: found[name].rho)
        return worst

    @property
    def worst(self) -> RhoResult:
        """The figure of the attack: the worst rho over all responders, with its interval."""
        return self.responders[self.worst_responder]

    @property
    def complete(self) -> bool:
        """Whether every seed of the budget was trained."""
        trained = {each.seed for each in self.trained}
        return "proof" in self.responders or trained >= set(self.budget["responder"]["seeds"])

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            **super().to_dict(),
            "setting": self.budget["name"],
            "complete": self.complete,
            "worst_responder": self.worst_responder,
            "worst": self.worst.to_dict(),
        }

    def to_json(self, indent: int | None = None) -> str:
        """The same as text."""
        return json.dumps(self.to_dict(), indent=indent)

    def report(self) -> str:
        """A table of all responders for people."""
        lowest, bound = ("lowest", "above") if self.role == "host" else ("highest", "below")
        headings = ("responder", "rho", "95 % interval", "validation", "updates", "unfinished")
        rows: list[tuple[str, ...]] = [headings]
        for each in self.trained:
            best = f"{each.best['rho']:.4f}", f"{each.best['updates']} of {each.updates}"
            rows.append(_row(f"trained, seed {each.seed}", each.test, *best))
            if each.lookahead is not None:
                rows.append(_row("  the same with lookahead", each.lookahead))
        rows += [_row(name, found) for name, found in self.scripted.items()]
        games = self.budget["test"]["games"]
        lines = [
            f"{self.role} {self.player} under attack, {self.budget['name']}: {games} games each",
            "",
            text_table(rows),
            "",
            f"worst: {self.worst.rho:.4f} ({between(*self.worst.interval)}) by "
            f"{self.worst_responder}, the {lowest} rho found",
        ]
        if self.exact is not None:
            lines.append(str(self.exact))
        if not self.complete:
            missing = len(self.budget["responder"]["seeds"]) - len(self.trained)
            lines.append(f"incomplete: {missing} seeds are not trained yet")
        lines.append(
            f"A bound from {bound} of the {lowest} rho over all responders; it proves no more."
        )
        return "\n".join(lines)


def _row(name: str, found: RhoResult, best: str = "-", updates: str = "-") -> tuple[str, ...]:
    interval = between(*found.interval)
    return name, f"{found.rho:.4f}", interval, best, updates, str(found.unfinished)
