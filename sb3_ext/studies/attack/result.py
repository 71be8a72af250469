"""What an attack found, as data and as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from resgym.game.spec import Role
from resgym.measure.rho import RhoResult
from sb3_ext.studies.tables import text_table

__all__ = ["AttackResult", "ExactResult", "SeedResult", "rho_from_dict"]


def rho_from_dict(data: Mapping[str, Any]) -> RhoResult:
    """What `RhoResult.to_dict` gave."""
    names = {field.name for field in fields(RhoResult)} - {"interval"}
    low, high = data["interval_95"]
    return RhoResult(**{name: data[name] for name in names}, interval=(low, high))


def _plain(result: Any) -> dict[str, Any]:
    """The fields of a result as plain data, for JSON."""
    return {
        key: value.to_dict() if isinstance(value, RhoResult) else value
        for key, value in vars(result).items()
    }


@dataclass(frozen=True)
class ExactResult:
    """What a perfect responder reaches on some starts.

    A search that was given up leaves its start with a bound: the game has at least so many moves,
    and whether it ends is open. So there are two figures; they are one if nothing was given up.

    Attributes:
        role: the seat of the player under attack.
        lowest: rho if no open game ended before the cut.
        highest: rho if every open game ended as soon as its bound allows.
        given_up: starts whose search was given up.
        endless: starts on which play provably never ends.
    """

    role: Role
    lowest: RhoResult
    highest: RhoResult
    given_up: int
    endless: int

    @property
    def is_exact(self) -> bool:
        """Whether every start was settled."""
        return self.given_up == 0

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {**_plain(self), "starts": self.lowest.games}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ExactResult:
        """What `to_dict` gave."""
        lowest, highest = (rho_from_dict(data[key]) for key in ("lowest", "highest"))
        return cls(data["role"], lowest, highest, data["given_up"], data["endless"])

    def __str__(self) -> str:
        low, high = self.lowest.rho, self.highest.rho
        value = f"{low:.4f}" if self.is_exact else f"{low:.4f} to {high:.4f}"
        known = "" if self.is_exact else f", {self.given_up} searches given up"
        return f"exact {value} on {self.lowest.games} starts{known}, {self.endless} endless"


@dataclass(frozen=True)
class SeedResult:
    """One trained responder.

    Attributes:
        seed: of its training.
        test: it against the player, on the test's starts.
        lookahead: the same with a rollout of every answer before each move; None without.
        on_exact: the worse of the two on the starts that were searched; None without a search.
        best: its best version: updates, transitions, seconds, rho on the validation starts.
        history: all looks at it.
        updates: gradient updates made.
        transitions: moves played for training.
        parameters: numbers in its network.
        seconds: time taken.
    """

    seed: int
    test: RhoResult
    lookahead: RhoResult | None
    on_exact: RhoResult | None
    best: dict[str, Any]
    history: list[dict[str, Any]]
    updates: int
    transitions: int
    parameters: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return _plain(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SeedResult:
        """What `to_dict` gave.

        Raises:
            KeyError, TypeError, ValueError: it is something else.
        """
        found = dict(data)
        for key in ("test", "lookahead", "on_exact"):
            found[key] = found[key] and rho_from_dict(found[key])
        return cls(**found)


@dataclass(frozen=True)
class AttackResult:
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
    scripted: dict[str, RhoResult]
    exact: ExactResult | None = None

    @property
    def responders(self) -> dict[str, RhoResult]:
        """Every responder's rho, the trained ones as ``seed 0`` and ``seed 0 with lookahead``."""
        found = {}
        for each in self.trained:
            found[f"seed {each.seed}"] = each.test
            if each.lookahead is not None:
                found[f"seed {each.seed} with lookahead"] = each.lookahead
        return {**found, **self.scripted}

    @property
    def worst_responder(self) -> str:
        """The responder that did most."""
        found = self.responders
        pick = min if self.role == "host" else max
        return pick(found, key=lambda name: found[name].rho)

    @property
    def worst(self) -> RhoResult:
        """The figure of the attack: the worst rho over all responders, with its interval."""
        return self.responders[self.worst_responder]

    @property
    def complete(self) -> bool:
        """Whether every seed of the budget was trained."""
        done = {each.seed for each in self.trained}
        return done >= set(self.budget["responder"]["seeds"])

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            **vars(self),
            "setting": self.budget["name"],
            "complete": self.complete,
            "worst_responder": self.worst_responder,
            "worst": self.worst.to_dict(),
            "trained": [each.to_dict() for each in self.trained],
            "scripted": {name: each.to_dict() for name, each in self.scripted.items()},
            "exact": None if self.exact is None else self.exact.to_dict(),
        }

    def to_json(self, indent: int | None = None) -> str:
        """The same as text."""
        return json.dumps(self.to_dict(), indent=indent)

    def report(self) -> str:
        """A table of all responders for people."""
        lowest, bound = ("lowest", "above") if self.role == "host" else ("highest", "below")
        low, high = self.worst.interval
        rows = [("responder", "rho", "95 % interval", "validation", "updates", "unfinished")]
        for each in self.trained:
            best, of_all = f"{each.best['rho']:.4f}", f"{each.best['updates']} of {each.updates}"
            rows.append(_row(f"trained, seed {each.seed}", each.test, best, of_all))
            if each.lookahead is not None:
                rows.append(_row("  the same with lookahead", each.lookahead))
        rows += [_row(name, found) for name, found in self.scripted.items()]
        test = self.budget["test"]["games"]
        lines = [
            f"{self.role} {self.player} under attack, {self.budget['name']}: {test} games each",
            "",
            text_table(rows),
            "",
            f"worst: {self.worst.rho:.4f} ({low:.4f} to {high:.4f}) by {self.worst_responder}, "
            f"the {lowest} rho found",
        ]
        if self.exact is not None:
            reached = [each.on_exact.rho for each in self.trained if each.on_exact]
            there = (min if self.role == "host" else max)(reached, default=None)
            text = "" if there is None else f"; the trained responders reach {there:.4f} there"
            lines.append(f"{self.exact}{text}")
        if not self.complete:
            missing = len(self.budget["responder"]["seeds"]) - len(self.trained)
            lines.append(f"incomplete: {missing} seeds are not trained yet")
        lines.append(
            f"A bound from {bound} of the {lowest} rho over all responders; it proves no more."
        )
        return "\n".join(lines)


def _row(
    name: str, found: RhoResult, validation: str = "-", updates: str = "-"
) -> tuple[str, str, str, str, str, str]:
    low, high = found.interval
    interval = f"{low:.4f} to {high:.4f}"
    return name, f"{found.rho:.4f}", interval, validation, updates, str(found.unfinished)
