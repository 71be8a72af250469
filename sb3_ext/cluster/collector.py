"""A `Collector` with actors in processes of a Ray cluster; docs/cluster.md lists the guarantees."""

from __future__ import annotations

import copy
import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

import torch
import yaml
from annotated_types import Ge, Le
from pydantic import Strict, model_validator
from torch import Tensor

from resgym.trust import imported_modules
from sb3_ext.cluster.actor import Actor, ActorPlan, Chunk, blocks, play_chunk, vector_env_maker
from sb3_ext.cluster.connection import abandon, check_cpus, connected, reason_of, was_lost
from sb3_ext.config.checks import shown
from sb3_ext.config.sections import (
    Count,
    CountOrMinusOne,
    Fraction,
    NonNegative,
    Number,
    PositiveCount,
    PositiveNumber,
    Section,
    Size,
    Whole,
    read_as,
)
from sb3_ext.ddqn.collector import Collector, ParallelStep
from sb3_ext.types import Arguments, StateDict


class CollectorSettings(Section):
    """How actors collect."""

    env_kwargs: Arguments = {}  # noqa: RUF012
    """arguments of the environment"""
    actors: Annotated[int, Whole, Ge(0), Le(10_000)] = 1
    """number of actors; 0 plays in the learner's process, as without a collector"""
    games: Size | None = None
    """games of each actor, a multiple of the model's rows; null: as many as the model"""
    chunk: Size = 64
    """parallel steps that are sent together"""
    in_flight: Size = 2
    """chunks that each actor may be asked for ahead"""
    sync_updates: PositiveCount = 100
    """updates between two versions of the weights"""
    max_staleness: Count = 400
    """largest age of a chunk's weights in updates, at least sync_updates; older ones are dropped"""
    epsilons: Annotated[tuple[Fraction, NonNegative], Strict(False)] | None = None
    """(epsilon, alpha): actor i of K explores with epsilon^(1 + alpha i / (K - 1)) (Horgan et al.
    2018) once learning has begun; null: all at the model's rate"""
    opponents: list[str] = []  # noqa: RUF012
    """names of players: actor i plays against entry i, cyclically"""
    max_restarts: CountOrMinusOne = -1
    """processes that one chunk may lose before the run ends; -1: no limit"""
    timeout_s: Annotated[PositiveNumber, Le(86_400)] = 120.0
    """seconds without any chunk after which the run ends with an error; they begin anew when a
    process is lost and its actor is started again"""
    deterministic: bool = False
    """use chunks in the order of their requests: the run is then the same bit for bit each time,
    also after a resume"""
    actor_cpus: Annotated[float, Number, Ge(1e-4)] = 1.0
    """processors that Ray reserves for each actor; fractions are allowed"""

    @model_validator(mode="after")
    def _parts_fit(self) -> CollectorSettings:
        if self.max_staleness < self.sync_updates:
            raise ValueError(
                f".max_staleness: got {self.max_staleness}; expected at least sync_updates, "
                f"{self.sync_updates}"
            )
        return self


@dataclass
class Stream:
    """The chunks of one actor, in order: each begins where the games of the one before ended.

    Attributes:
        number: Index of the actor.
        packed: Ray's reference to what plays them.
        games: Where its games stand before the oldest request; None before the first chunk.
        next_sequence: Number of the next chunk to ask for.
        requests: Those not answered yet, oldest first: sequence, version of the weights, rate.
        answers: Ray's references, to the chunk of each request and to where its games stand then.
        lost: Processes that the oldest request has lost.
    """

    number: int
    packed: Any
    games: Any = None
    next_sequence: int = 0
    requests: list[dict[str, Any]] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)
    lost: int = 0

    def __str__(self) -> str:
        again = f" (started again: {self.lost})" if self.lost else ""
        return f"actor {self.number}: chunk {self.requests[0]['sequence']}{again}"


class RayCollector:
    """Collects with actors, each with games of its own; see `Collector`.

    `model.learn(n, collector=RayCollector("resgym/HironakaHost-v0", actors=8))`. Whole chunks go
    into the replay buffer, so `learn` ends with the chunk that completes `n`. A process remembers
    nothing, so any of them may play any actor's next chunk, and another one is asked for what a
    lost process did not give.

    Args:
        env: Id of a vector environment, or a function of `num_envs` and `env_kwargs` that makes
            one. Its games must have `state_dict` and `load_state_dict`.
        env_kwargs: Its arguments, as in `CollectorSettings`.
        **settings: See `CollectorSettings`.

    Attributes:
        settings: Those.
        version: Updates that made the weights published last; -1 before the first.

    Raises:
        ValueError, TypeError: An argument out of its range or of another type, in one line.
    """

    def __init__(
        self,
        env: str | Callable[..., Any],
        env_kwargs: Arguments | None = None,
        **settings: Any,
    ) -> None:
        if isinstance(env, str):
            env = vector_env_maker(env)
        elif not callable(env):
            raise TypeError(f"env must be an id or a function, got {shown(env)}")
        self.env = env
        self.settings = read_as(CollectorSettings, {**settings, "env_kwargs": env_kwargs or {}})
        self.actors = self.settings.actors
        self._begin()

    def _begin(self) -> None:
        self.version = -1
        self._updates = 0
        self._rate: float | None = None
        self._weights: dict[int, Any] = {}
        self._streams: list[Stream] = []
        self._counts: dict[str, Any] = {
            "accepted": 0,
            "stale": 0,
            "episodes": 0,
            "staleness_sum": 0,
            "staleness_max": 0,
            "waiting_seconds": 0,
            "actors": [{"transitions": 0, "busy_seconds": 0} for _ in range(self.actors)],
        }

    @property
    def statistics(self) -> dict[str, Any]:
        """Chunks, sums over the accepted ones, seconds of waiting, and what each actor did."""
        counts = copy.deepcopy(self._counts)
        mean = counts.pop("staleness_sum") / max(1, counts["accepted"])
        return {"received": counts["accepted"] + counts["stale"], **counts, "staleness_mean": mean}

    @contextmanager
    def session(self, model: Any) -> Iterator[Collector | None]:
        """The actors live while the block lasts; see `Collector`.

        Raises:
            ValueError: The cluster is not there or too small, or the model does not fit.
        """
        settings = self.settings
        self._begin()
        if self.actors == 0:
            yield None
            return
        self._rows = model.n_envs
        self._cut = model.replay_buffer.cut
        games = settings.games or self._rows
        if games % self._rows:
            raise ValueError(f"games must be a multiple of the model's {self._rows}, got {games}")
        saved = model.collector_state
        fresh = int(torch.randint(2**31, ())) if model.seed is None else model.seed
        self._seed = fresh if saved is None else saved["seed"]
        plan = ActorPlan(
            env=self.env,
            games=games,
            chunk=settings.chunk,
            seed=self._seed,
            explorer=model.explorer_elsewhere(),
            mask_source=model.legal_actions.source,
            observation_space=model.observation_space,
            action_space=model.action_space,
            modules=imported_modules(),
        )
        with connected() as ray:
            self._ray = ray
            check_cpus(ray, self.actors, settings.actor_cpus, ", or a smaller actor_cpus")
            self._play = ray.remote(play_chunk).options(
                num_cpus=settings.actor_cpus, num_returns=2, max_retries=0
            )
            for number in range(self.actors):
                own = dict(settings.env_kwargs)
                if settings.opponents:
                    own["opponent"] = settings.opponents[number % len(settings.opponents)]
                make = partial(Actor, plan, own)
                self._streams.append(Stream(number, ray.put(ray.cloudpickle.dumps(make))))
            self._max_requests = self._requests_at_a_time(model, settings.chunk * games)
            try:
                if saved is not None:
                    self._load_state_dict(saved)
                yield self
                model.collector_state = self.state_dict()
                if model.verbose >= 1:
                    print(yaml.safe_dump({"collector": self.statistics}, sort_keys=False))
            finally:
                abandon(ray, [chunk for each in self._streams for chunk, _ in each.answers])
                self._cut()

    def _requests_at_a_time(self, model: Any, transitions: int) -> int:
        """Chunks of this many transitions that may be asked for at a time."""
        settings = self.settings
        most = self.actors * settings.in_flight
        updates = math.ceil(model.updates_for(transitions))
        if updates:
            spare = settings.max_staleness - settings.sync_updates
            most = min(most, 1 + (spare + 1) // updates)
        if most < self.actors:
            warnings.warn(
                f"actors: of {self.actors} only {most} can work at a time: a chunk brings"
                f" {updates} updates, and max_staleness is {settings.max_staleness}",
                stacklevel=4,
            )
        return most

    def publish(
        self, version: int, weights: Mapping[str, Tensor], exploration_rate: float | None
    ) -> None:
        """See `Collector`; only every `sync_updates`-th version goes out."""
        self._updates = version
        self._rate = exploration_rate
        if self.version < 0 or version - self.version >= self.settings.sync_updates:
            self._send(version, weights)

    def _send(self, version: int, weights: Mapping[str, Tensor]) -> None:
        """Plays with these weights from now on; each version is sent once."""
        arrays = {name: value.detach().cpu().numpy() for name, value in weights.items()}
        self._weights[version], self.version = self._ray.put(arrays), version

    def collect(self, num_steps: int) -> Iterator[ParallelStep]:
        """See `Collector`: the steps of one chunk, whatever `num_steps` is."""
        while True:
            chunk = self.receive()
            if self.accept(chunk, self._updates):
                for step in blocks(chunk.steps, self._rows):
                    self._cut()  # other games than those stored last
                    yield step
                return

    def accept(self, chunk: Chunk, updates: int) -> bool:
        """Count a chunk that arrived after this many updates; False: it must not be stored."""
        counts = self._counts
        staleness = updates - chunk.version
        account = counts["actors"][chunk.actor]
        account["busy_seconds"] += chunk.seconds
        if staleness > self.settings.max_staleness:
            counts["stale"] += 1
            return False
        counts["accepted"] += 1
        counts["staleness_sum"] += staleness
        counts["staleness_max"] = max(counts["staleness_max"], staleness)
        counts["episodes"] += int(chunk.steps.episode["ended"].sum())  # type: ignore[index]
        account["transitions"] += chunk.steps.actions.size
        return True

    def _ask(self) -> None:
        """Requests chunks with the newest weights, as many as may be under way."""
        streams = self._streams
        while sum(len(each.requests) for each in streams) < self._max_requests:
            stream = min(streams, key=lambda e: (len(e.requests), e.next_sequence, e.number))
            asked = {
                "sequence": stream.next_sequence,
                "version": self.version,
                "exploration_rate": self._epsilon(stream.number),
            }
            self._submit(stream, asked)
            stream.next_sequence += 1
        used = {asked["version"] for each in streams for asked in each.requests} | {self.version}
        self._weights = {version: self._weights[version] for version in sorted(used)}

    def _submit(self, stream: Stream, asked: dict[str, Any]) -> None:
        games = stream.answers[-1][1] if stream.answers else stream.games
        sequence, version, rate = asked.values()
        answer = self._play.remote(
            stream.packed, stream.number, sequence, version, self._weights[version], rate, games
        )
        stream.answers.append(answer)
        stream.requests.append(asked)

    def _repeat(self, stream: Stream) -> None:
        """Asks again for all that an actor owes."""
        owed, stream.requests, stream.answers = stream.requests, [], []
        for asked in owed:
            self._submit(stream, asked)

    def receive(self) -> Chunk:
        """The next chunk, accepted or not.

        Raises:
            ValueError: The environment raises an error.
            ChildProcessError: Processes were lost too often, or none answers.
        """
        self._ask()
        began, ray, settings = time.perf_counter(), self._ray, self.settings
        while True:
            asked = [each for each in self._streams if each.requests]
            asked.sort(key=lambda each: (each.requests[0]["sequence"], each.number))
            oldest = asked[:1] if settings.deterministic else asked
            by_reference = {each.answers[0][0]: each for each in oldest}
            ready, _ = ray.wait(list(by_reference), timeout=settings.timeout_s)
            if not ready:
                raise ChildProcessError(
                    f"actors: no chunk came for {settings.timeout_s:g} s, timeout_s; waited for "
                    f"{', '.join(map(str, oldest))}"
                )
            stream = by_reference[ready[0]]
            try:
                chunk, games = ray.get(stream.answers[0])
                break
            except ray.exceptions.RayError as error:
                if not was_lost(ray, error):
                    raised = isinstance(error, ray.exceptions.RayTaskError)
                    kind = ValueError if raised else ChildProcessError
                    raise kind(f"{stream}: {reason_of(error)}") from error
                if stream.lost == settings.max_restarts:
                    raise ChildProcessError(
                        f"{stream}: its process was lost: {type(error).__name__}, more often than "
                        "max_restarts allows"
                    ) from error
            stream.lost += 1  # an actor that is started again is alive: it has all the time anew
            self._repeat(stream)
        self._counts["waiting_seconds"] += time.perf_counter() - began
        stream.requests.pop(0)
        stream.answers.pop(0)
        stream.games = games
        stream.lost = 0
        return chunk  # type: ignore[no-any-return]

    def state_dict(self) -> StateDict:
        """Where all games stand, what was asked for and counted, and the weights in use; copies."""
        arrays = self._ray.get(list(self._weights.values()))
        return {
            "counts": copy.deepcopy(self._counts),
            "seed": self._seed,
            "streams": [
                {
                    "games": each.games,
                    "next_sequence": each.next_sequence,
                    "requests": list(each.requests),
                }
                for each in self._streams
            ],
            "weights": {
                version: {name: torch.tensor(value) for name, value in each.items()}
                for version, each in zip(self._weights, arrays, strict=True)
            },
        }

    def _load_state_dict(self, state: StateDict) -> None:
        """Repeats the open requests; ValueError for another number of actors."""
        if (before := len(state["streams"])) != self.actors:
            raise ValueError(f"actors: the resumed run has {before}, got {self.actors}")
        self._counts = copy.deepcopy(state["counts"])
        for version in sorted(state["weights"]):
            self._send(version, state["weights"][version])
        for stream, saved in zip(self._streams, state["streams"], strict=True):
            stream.games = saved["games"]
            stream.next_sequence = saved["next_sequence"]
            stream.requests = saved["requests"]
            self._repeat(stream)

    def _epsilon(self, number: int) -> float | None:
        if self._rate is None or self.settings.epsilons is None:
            return self._rate
        epsilon, alpha = self.settings.epsilons
        return float(epsilon ** (1 + alpha * number / max(1, self.actors - 1)))
