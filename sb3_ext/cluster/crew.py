"""The actors of a run: who is asked for which chunk, and with which weights."""

from __future__ import annotations

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


@dataclass
class Request:
    """One chunk that was asked for.

    Attributes:
        sequence: Of the chunk among those of its actor.
        version: Of the weights that shall play.
        exploration_rate: As in `Explorer`.
        references: Ray's, to the chunk and to where its games stand then.
    """

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
    """

    number: int
    packed: Any
    games: Any = None
    next_sequence: int = 0
    requests: list[Request] = field(default_factory=list)


class Crew:
    """Chunks that processes of a Ray cluster were asked for, and the weights to play them with.

    A process remembers nothing, so any of them may play any actor's next chunk, and Ray asks
    another one for what a lost process did not give.

    Args:
        ray: The module, connected.
        plan: What all actors are told.
        env_kwargs: Arguments of the environment of each actor.
        cpus: Processors that Ray reserves for each.
        timeout: Seconds without any chunk after which the run ends.
        max_restarts: How many processes may be lost by one chunk; -1: without limit.
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
        self._ray, self._timeout, self._in_order = ray, timeout, in_order
        work = ray.remote(play_chunk)
        self._play = work.options(num_cpus=cpus, num_returns=2, max_retries=max_restarts)
        packed = (ray.put(ray.cloudpickle.dumps(partial(Actor, plan, each))) for each in env_kwargs)
        self._streams = [Stream(number, each) for number, each in enumerate(packed)]
        self._weights: dict[int, Any] = {}
        self.version = -1

    def publish(self, version: int, weights: Mapping[str, Tensor]) -> None:
        """Play with these weights from now on; each version is sent once."""
        if version not in self._weights:
            arrays = {name: value.detach().cpu().numpy() for name, value in weights.items()}
            self._weights[version] = self._ray.put(arrays)
        self.version = version

    def stop(self) -> None:
        """Stop waiting for all chunks; may be called again."""
        for request in (each for stream in self._streams for each in stream.requests):
            with suppress(Exception):  # the cluster may be gone
                self._ray.cancel(request.references[0], force=True)

    def ask(self, most: int, exploration_rate: Callable[[int], float | None]) -> None:
        """Request chunks with the newest weights until this many are open.

        Args:
            most: Chunks of all actors together.
            exploration_rate: Of an actor, by its number.
        """
        streams = self._streams
        while sum(len(each.requests) for each in streams) < most:
            stream = min(streams, key=lambda e: (len(e.requests), e.next_sequence, e.number))
            rate = exploration_rate(stream.number)
            self._submit(stream, Request(stream.next_sequence, self.version, rate))
            stream.next_sequence += 1
        used = {asked.version for each in streams for asked in each.requests} | {self.version}
        self._weights = {version: self._weights[version] for version in sorted(used)}

    def _submit(self, stream: Stream, request: Request) -> None:
        games = stream.requests[-1].references[1] if stream.requests else stream.games
        asked = (stream.number, request.sequence, request.version)
        weights = self._weights[request.version]
        given = (stream.packed, *asked, weights, request.exploration_rate, games)
        request.references = self._play.remote(*given)
        stream.requests.append(request)

    def receive(self) -> Chunk:
        """The next chunk.

        Raises:
            ValueError: The environment raises an error.
            ChildProcessError: Processes were lost too often, or none answers.
        """
        asked = [each for each in self._streams if each.requests]
        asked.sort(key=lambda each: (each.requests[0].sequence, each.number))
        oldest = asked[:1] if self._in_order else asked
        by_reference = {each.requests[0].references[0]: each for each in oldest}
        ready, _ = self._ray.wait(list(by_reference), timeout=self._timeout)
        if not ready:
            raise ChildProcessError(f"actors: no chunk came for {self._timeout:g} s, timeout_s")
        stream = by_reference[ready[0]]
        request = stream.requests.pop(0)
        where = f"actor {stream.number}: chunk {request.sequence}"
        try:
            chunk, stream.games = self._ray.get(request.references)
        except self._ray.exceptions.RayTaskError as error:
            raise ValueError(f"{where}: {reason_of(error)}") from error
        except self._ray.exceptions.RayError as error:
            raise ChildProcessError(
                f"{where}: its process was lost: {type(error).__name__}, more often than "
                "max_restarts allows"
            ) from error
        return chunk  # type: ignore[no-any-return]

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
        return {"streams": streams, "weights": weights}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Repeat the open requests; ValueError for another number of actors."""
        if len(state["streams"]) != len(self._streams):
            raise ValueError(
                f"actors: the resumed run has {len(state['streams'])}, got {len(self._streams)}"
            )
        for version in sorted(state["weights"], key=int):
            self.publish(int(version), state["weights"][version])
        for stream, saved in zip(self._streams, state["streams"], strict=True):
            stream.games, stream.next_sequence = saved["games"], saved["next_sequence"]
            for each in saved["requests"]:
                self._submit(stream, Request(**each))
