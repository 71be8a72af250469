"""The actors of a run: who is asked for which chunk, and what is asked again when one is lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from sb3_ext.cluster.actor import Actor, ActorPlan, play_chunk
from sb3_ext.cluster.chunk import Chunk
from sb3_ext.cluster.connection import check_cpus, reason_of

START_SECONDS = 120.0
"""How long a process may take for its first chunk, where `timeout_s` is less: it imports all."""

LOST_IN_A_ROW = 50
"""So often one chunk may lose the process that plays it before the run ends."""


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


@dataclass
class Stream:
    """The chunks of one actor, in order: each begins where the games of the one before ended.

    Attributes:
        number: Of the actor.
        packed: Ray's reference to what plays them.
        games: Where its games stand before the oldest request; None before the first chunk.
        next_sequence: Of the next chunk to be asked for.
        requests: Those not answered yet, oldest first.
        lost: How often in a row the oldest request was lost.
        until: When it counts as lost.
    """

    number: int
    packed: Any
    games: Any = None
    next_sequence: int = 0
    requests: list[Request] = field(default_factory=list)
    lost: int = 0
    until: float = 0.0


class Crew:
    """Chunks that processes of a Ray cluster were asked for, and the weights to play them with.

    A process remembers nothing, so any of them may play any actor's next chunk.

    Args:
        ray: The module, connected.
        plan: What all actors are told.
        env_kwargs: Arguments of the environment of each actor.
        cpus: Processors that Ray reserves for each.
        timeout: Seconds without an answer after which a process counts as hanging.
        max_restarts: How often a process of each actor may be lost; -1: without limit.
        in_order: Chunks come in the order in which they were asked for.

    Attributes:
        version: Number of the weights published last, -1 before the first.

    Raises:
        ValueError: The cluster is too small.
    """

    def __init__(
        self,
        ray: Any,
        plan: ActorPlan,
        env_kwargs: Sequence[Mapping[str, Any]],
        *,
        cpus: float,
        timeout: float,
        max_restarts: int,
        in_order: bool,
    ) -> None:
        check_cpus(ray, len(env_kwargs), cpus, ", or a smaller actor_cpus")
        self._ray, self._timeout = ray, timeout
        self._max_restarts, self._in_order = max_restarts, in_order
        # Asking again is done here, and not by Ray, so that it is counted.
        self._play = ray.remote(play_chunk).options(num_cpus=cpus, num_returns=2, max_retries=0)
        packed = (ray.put(ray.cloudpickle.dumps(partial(Actor, plan, each))) for each in env_kwargs)
        self._streams = [Stream(number, each) for number, each in enumerate(packed)]
        self._weights: dict[int, Any] = {}
        self.version = -1
        self._asked = 0

    def publish(self, version: int, weights: Mapping[str, Tensor]) -> None:
        """Play with these weights from now on; each version is sent once."""
        if version not in self._weights:
            arrays = {name: value.detach().cpu().numpy() for name, value in weights.items()}
            self._weights[version] = self._ray.put(arrays)
        self.version = version

    def stop(self) -> None:
        """Nobody is waited for any more; again is harmless."""
        for stream in self._streams:
            self._cancel(stream)

    def _cancel(self, stream: Stream) -> None:
        for request in stream.requests:
            with suppress(Exception):  # the cluster may be gone
                self._ray.cancel(request.references[0], force=True)

    def ask(self, most: int, exploration_rate: Callable[[int], float | None]) -> None:
        """Ask for chunks with the newest weights until so many are under way.

        Args:
            most: Chunks of all actors together.
            exploration_rate: Of an actor, by its number.
        """
        streams = self._streams
        while sum(len(each.requests) for each in streams) < most:
            stream = min(streams, key=lambda e: (len(e.requests), e.next_sequence, e.number))
            rate = exploration_rate(stream.number)
            stream.requests.append(Request(self._asked, stream.next_sequence, self.version, rate))
            self._asked += 1
            stream.next_sequence += 1
            self._submit(stream, len(stream.requests) - 1)
        used = {asked.version for each in streams for asked in each.requests} | {self.version}
        self._weights = {version: self._weights[version] for version in sorted(used)}

    def _submit(self, stream: Stream, first: int = 0) -> None:
        """Hand over the requests from a place of the queue on."""
        if not first:
            stream.until = time.monotonic() + max(self._timeout, START_SECONDS)
        for place, request in enumerate(stream.requests[first:], first):
            games = stream.requests[place - 1].references[1] if place else stream.games
            asked = (stream.number, request.sequence, request.version)
            weights, rate = self._weights[request.version], request.exploration_rate
            request.references = self._play.remote(stream.packed, *asked, weights, rate, games)

    def receive(self, accounts: Sequence[dict[str, Any]]) -> Chunk:
        """The next chunk, after it was asked for as often as that takes.

        Args:
            accounts: Of the actors, which count how often a process was lost.

        Raises:
            ValueError: The environment raises an error.
            ChildProcessError: Processes were lost too often.
        """
        while True:
            asked = [each for each in self._streams if each.requests]
            asked.sort(key=lambda each: each.requests[0].number)
            if self._in_order:
                asked = asked[:1]
            by_reference = {each.requests[0].references[0]: each for each in asked}
            patience = max(0.0, min(each.until for each in asked) - time.monotonic())
            ready, _ = self._ray.wait(list(by_reference), timeout=patience)
            if not ready:
                stream = min(asked, key=lambda each: each.until)
                self._ask_again(stream, accounts, f"did not answer for {self._timeout:g} s")
                continue
            stream = by_reference[ready[0]]
            request = stream.requests[0]
            try:
                chunk, stream.games = self._ray.get(request.references)
            except self._ray.exceptions.RayTaskError as error:
                where = f"actor {stream.number}: chunk {request.sequence}"
                raise ValueError(f"{where}: {reason_of(error)}") from error
            except self._ray.exceptions.RayError as error:
                self._ask_again(stream, accounts, f"was lost: {type(error).__name__}")
            else:
                del stream.requests[0]
                stream.lost, stream.until = 0, time.monotonic() + self._timeout
                return chunk  # type: ignore[no-any-return]

    def _ask_again(self, stream: Stream, accounts: Sequence[dict[str, Any]], reason: str) -> None:
        """Ask another process for what one did not give."""
        account = accounts[stream.number]
        account["restarts"] += 1
        stream.lost += 1
        where = f"actor {stream.number}: chunk {stream.requests[0].sequence}: its process {reason}"
        if 0 <= self._max_restarts < account["restarts"]:
            raise ChildProcessError(
                f"{where}; it was replaced {self._max_restarts} times, which is max_restarts"
            )
        if stream.lost >= LOST_IN_A_ROW:
            raise ChildProcessError(f"{where}, as {stream.lost} in a row")
        self._cancel(stream)
        if not self._in_order:
            for request in stream.requests:
                request.version = self.version
        self._submit(stream)

    def state_dict(self) -> dict[str, Any]:
        """Where all games stand, what was asked for, and the weights in use."""
        arrays = self._ray.get(list(self._weights.values()))
        streams = [
            {
                "games": each.games,
                "next_sequence": each.next_sequence,
                "requests": [
                    {name: value for name, value in vars(asked).items() if name != "references"}
                    for asked in each.requests
                ],
            }
            for each in self._streams
        ]
        weights = {
            str(version): {name: torch.tensor(value) for name, value in each.items()}
            for version, each in zip(self._weights, arrays, strict=True)
        }
        return {"asked": self._asked, "streams": streams, "weights": weights}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Ask again for what was asked for; ValueError for another number of actors."""
        if len(state["streams"]) != len(self._streams):
            raise ValueError(
                f"actors: the run that goes on has {len(state['streams'])}, got"
                f" {len(self._streams)}"
            )
        for version in sorted(state["weights"], key=int):
            self.publish(int(version), state["weights"][version])
        self._asked = state["asked"]
        for stream, saved in zip(self._streams, state["streams"], strict=True):
            stream.games, stream.next_sequence = saved["games"], saved["next_sequence"]
            stream.requests = [Request(**each) for each in saved["requests"]]
            self._submit(stream)
