"""The requests to one actor, in order, and the actor's process, which may be replaced."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

LONGEST_WAIT = 86_400.0
"""Seconds: a day."""

START_SECONDS = 120.0
"""How long an actor may take to start, where `timeout_s` is less: it imports everything."""


@dataclass
class Request:
    """One chunk that was asked for.

    Attributes:
        number: Of the request among those to all actors.
        sequence: Of the chunk among those of its actor.
        version: Of the weights that shall play.
        exploration_rate: As in `Explorer`.
        references: Ray's, to the chunk and to where its games stand then.
    """

    number: int
    sequence: int
    version: int
    exploration_rate: float | None
    references: list[Any] = field(default_factory=list, repr=False, compare=False)

    def state_dict(self) -> dict[str, Any]:
        """All but the references."""
        names = ("number", "sequence", "version", "exploration_rate")
        return {name: getattr(self, name) for name in names}


class Stream:
    """The chunks of one actor.

    Args:
        number: Of the actor.
        env_kwargs: Of its environment.

    Attributes:
        games: Where its games stand before the oldest request; None before the first chunk.
        next_sequence: Of the next chunk to be asked for.
        requests: Those not answered yet, oldest first.
        generation: How often the actor was replaced.
        failures, lost: How often in a row the oldest request was answered by an error, or not.
    """

    def __init__(self, number: int, env_kwargs: Mapping[str, Any]) -> None:
        self.number, self.env_kwargs = number, env_kwargs
        self.games: Any = None
        self.next_sequence = 0
        self.requests: list[Request] = []
        self.generation = self.failures = self.lost = 0
        self._actor: Any = None
        self._starting: Any = None
        self._since = 0.0

    def start(self, actor_class: Any, plan: Any) -> Any:
        """Start an actor; a reference to what `Actor.start` returns."""
        self._actor = actor_class.remote(self.number, self.generation, plan, self.env_kwargs)
        self._starting = self._actor.start.remote()
        self._since = time.monotonic()
        return self._starting

    def kill(self, ray: Any) -> None:
        """End the actor's process, also one that hangs; again is harmless."""
        if self._actor is not None:
            ray.kill(self._actor)
        self._actor = self._starting = None

    def submit(self, place: int, weights: Any) -> None:
        """Hand the request at a place of the queue to the actor, after those before it."""
        request = self.requests[place]
        games = self.requests[place - 1].references[1] if place else self.games
        if place == 0:
            self._since = time.monotonic()
        method = self._actor.collect.options(num_returns=2)
        request.references = method.remote(
            request.sequence, request.version, weights, request.exploration_rate, games
        )

    def answered(self, games: Any) -> Request:
        """The oldest request, which has got its chunk and `games` as they stand after it."""
        self.games = games
        self.failures = self.lost = 0
        self._since = time.monotonic()
        return self.requests.pop(0)

    def patience(self, ray: Any, timeout: float) -> float:
        """Seconds until the oldest request counts as lost; not positive if it does."""
        now = time.monotonic()
        if self._starting is not None and ray.wait([self._starting], timeout=0)[0]:
            self._starting, self._since = None, now
        allowed = timeout if self._starting is None else max(timeout, START_SECONDS)
        return self._since + allowed - now

    def state_dict(self) -> dict[str, Any]:
        """What another actor needs to go on."""
        requests = [each.state_dict() for each in self.requests]
        return {"games": self.games, "next_sequence": self.next_sequence, "requests": requests}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was taken; the requests have to be submitted again."""
        self.games, self.next_sequence = state["games"], state["next_sequence"]
        self.requests = [Request(**each) for each in state["requests"]]
