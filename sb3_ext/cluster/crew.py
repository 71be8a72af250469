"""The actors of a run: who is asked for which chunk, and who is replaced when one is lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from sb3_ext.cluster.actor import Actor, ActorPlan
from sb3_ext.cluster.chunk import Chunk
from sb3_ext.cluster.connection import check_cpus, reason_of, wait_for_start
from sb3_ext.cluster.ledger import ActorAccount
from sb3_ext.cluster.published import PublishedWeights
from sb3_ext.cluster.stream import START_SECONDS, Request, Stream

RAISED_IN_A_ROW = 3
"""So often one chunk may end in an error of the environment before the run does."""

LOST_IN_A_ROW = 50
"""So often one chunk may lose the actor that plays it before the run ends."""


class Crew:
    """Actors on a Ray cluster, and the chunks that they were asked for.

    Args:
        ray: The module, connected.
        plan: What all actors are told.
        env_kwargs: Arguments of the environment of each actor.
        weights: What they play with.
        cpus: Processors that Ray reserves for each.
        timeout: Seconds without an answer after which an actor counts as hanging.
        max_restarts: How often each may be replaced; -1: without limit.
        in_order: Chunks come in the order in which they were asked for.

    Raises:
        ValueError: The cluster is too small.
    """

    def __init__(
        self,
        ray: Any,
        plan: ActorPlan,
        env_kwargs: Sequence[Mapping[str, Any]],
        weights: PublishedWeights,
        *,
        cpus: float,
        timeout: float,
        max_restarts: int,
        in_order: bool,
    ) -> None:
        check_cpus(ray, len(env_kwargs), cpus, ", or a smaller actor_cpus")
        self._ray, self._weights = ray, weights
        self._timeout, self._max_restarts, self._in_order = timeout, max_restarts, in_order
        # Replacing actors here, and not by Ray, keeps it known which process was asked what.
        self._actor_class = ray.remote(Actor).options(
            num_cpus=cpus, max_restarts=0, max_task_retries=0
        )
        self._plan = ray.put(plan)
        self._streams = [Stream(number, each) for number, each in enumerate(env_kwargs)]
        self._asked = 0

    def start(self) -> None:
        """Start all actors; ValueError if one cannot make its environment."""
        started = [each.start(self._actor_class, self._plan) for each in self._streams]
        wait_for_start(self._ray, started, max(self._timeout, START_SECONDS))

    def stop(self) -> None:
        """End all actors; again is harmless."""
        for stream in self._streams:
            with suppress(Exception):  # the cluster may be gone
                stream.kill(self._ray)

    def ask(self, most: int, exploration_rate: Callable[[int], float | None]) -> None:
        """Ask for chunks with the newest weights until so many are under way.

        Args:
            most: Chunks of all actors together.
            exploration_rate: Of an actor, by its number.
        """
        while sum(len(each.requests) for each in self._streams) < most:
            order = (
                (len(each.requests), each.next_sequence, each.number) for each in self._streams
            )
            stream = self._streams[min(order)[-1]]
            rate, version = exploration_rate(stream.number), self._weights.newest
            stream.requests.append(Request(self._asked, stream.next_sequence, version, rate))
            self._asked += 1
            stream.next_sequence += 1
            stream.submit(len(stream.requests) - 1, self._weights[version])
        self._weights.keep({asked.version for each in self._streams for asked in each.requests})

    def receive(self, accounts: Sequence[ActorAccount]) -> Chunk:
        """The next chunk, after as many replacements of actors as that takes.

        Args:
            accounts: Of the actors, which count the replacements.

        Raises:
            ValueError: The environment raises an error again and again.
            ChildProcessError: An actor was lost too often.
        """
        while True:
            asked = [each for each in self._streams if each.requests]
            asked.sort(key=lambda each: each.requests[0].number)
            if self._in_order:
                asked = asked[:1]
            by_reference = {each.requests[0].references[0]: each for each in asked}
            patience = min(each.patience(self._ray, self._timeout) for each in asked)
            ready, _ = self._ray.wait(list(by_reference), timeout=max(0.0, patience))
            for reference, stream in by_reference.items():
                late = stream.patience(self._ray, self._timeout) <= 0
                if late and not self._ray.wait([reference], timeout=0)[0]:
                    reason = f"did not answer for {self._timeout:g} s"
                    self._replace(stream, accounts[stream.number], reason)
            if not ready:
                continue
            stream = by_reference[ready[0]]
            try:
                chunk, games = self._ray.get(stream.requests[0].references)
            except self._ray.exceptions.RayTaskError as error:
                self._replace(stream, accounts[stream.number], reason_of(error), error)
            except self._ray.exceptions.RayError as error:
                self._replace(stream, accounts[stream.number], f"was lost: {type(error).__name__}")
            else:
                stream.answered(games)
                return chunk  # type: ignore[no-any-return]

    def _replace(
        self, stream: Stream, account: ActorAccount, reason: str, raised: Exception | None = None
    ) -> None:
        """Start an actor anew and ask it for what the one before did not give."""
        account.restarts += 1
        stream.failures += raised is not None
        stream.lost += raised is None
        where = f"actor {stream.number}: chunk {stream.requests[0].sequence}"
        if stream.failures >= RAISED_IN_A_ROW:
            raise ValueError(f"{where} failed {stream.failures} times: {reason}") from raised
        if 0 <= self._max_restarts < account.restarts:
            raise ChildProcessError(
                f"{where}: the actor {reason}; it was replaced {self._max_restarts} times,"
                " which is max_restarts"
            ) from raised
        if stream.lost >= LOST_IN_A_ROW:
            raise ChildProcessError(f"{where}: {stream.lost} times in a row the actor {reason}")
        stream.kill(self._ray)
        stream.generation += 1
        stream.start(self._actor_class, self._plan)
        if not self._in_order:
            for request in stream.requests:
                request.version = self._weights.newest
        self._submit(stream)

    def _submit(self, stream: Stream) -> None:
        for place, request in enumerate(stream.requests):
            stream.submit(place, self._weights[request.version])

    def state_dict(self) -> dict[str, Any]:
        """Where all games stand, and what was asked for."""
        return {"asked": self._asked, "streams": [each.state_dict() for each in self._streams]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Ask again for what was asked for; ValueError for another number of actors."""
        if len(state["streams"]) != len(self._streams):
            raise ValueError(
                f"actors: the run that goes on has {len(state['streams'])}, got"
                f" {len(self._streams)}"
            )
        self._asked = state["asked"]
        for stream, saved in zip(self._streams, state["streams"], strict=True):
            stream.load_state_dict(saved)
            self._submit(stream)
