"""Many actors, one learner: a `Collector` whose chunks come from processes of a Ray cluster.

docs/cluster.md says what is promised.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import gymnasium
import torch
from gymnasium.envs.registration import EnvSpec
from torch import Tensor

from sb3_ext.cluster.actor import Actor, ActorPlan
from sb3_ext.cluster.connection import connected
from sb3_ext.cluster.ledger import Ledger
from sb3_ext.cluster.stream import START_SECONDS, Request, Stream
from sb3_ext.config.checks import check_count, check_number, one_line
from sb3_ext.off_policy.collector import ParallelStep

RAISED_IN_A_ROW = 3
"""So often one chunk may end in an error of the environment before the run does."""

LOST_IN_A_ROW = 50
"""So often one chunk may lose the actor that plays it before the run ends."""


class RayCollector:
    """Collects with actors, each a process with games of its own; see `Collector`.

    `model.learn(n, collector=RayCollector("resgym/HironakaHost-v0", actors=8))`. Whole chunks go
    into the replay buffer, so `learn` ends with the chunk that completes `n`.

    Args:
        env: Id of a vector environment, or a function of `num_envs` and `env_kwargs` that makes
            one. Its games must have `state_dict` and `load_state_dict`.
        env_kwargs: Its arguments; a list gives actor i the i-th, beginning again at its end.
        actors: How many; 0 collects in the learner's own process, as without a collector.
        games: Rows of each actor, a multiple of the model's; None: as many as the model's.
        chunk: Parallel steps that are sent together.
        in_flight: Chunks that each actor may be asked for ahead.
        sync_updates: New weights are published when so many updates were made since the last.
        max_staleness: A chunk is dropped if more updates than that were made since its weights,
            and not asked for if it would be. At least `sync_updates`.
        epsilons: (epsilon, alpha): actor i of K explores with epsilon^(1 + alpha i / (K - 1))
            (Horgan et al. 2018) once learning has begun; None: all at the model's rate.
        opponents: Players by name: actor i plays against the i-th, beginning again at the end.
        max_restarts: How often each actor is replaced before the run ends; -1: without limit.
        timeout_s: Seconds without an answer after which an actor counts as hanging.
        deterministic: Take chunks in the order in which they were asked for: the run is the same
            bit for bit each time, also after a resume.
        actor_cpus: Processors that Ray reserves for each actor; a part of one is allowed.
        address: Of a cluster; None: the one in use, that of `RAY_ADDRESS`, or a new one.

    Attributes:
        version: Updates that made the weights published last.

    Raises:
        ValueError, TypeError: An argument out of its range or of another type, in one line.
    """

    def __init__(
        self,
        env: str | Callable[..., Any],
        env_kwargs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        actors: int = 1,
        games: int | None = None,
        chunk: int = 64,
        in_flight: int = 2,
        sync_updates: int = 100,
        max_staleness: int = 400,
        epsilons: tuple[float, float] | None = None,
        opponents: Sequence[str] = (),
        max_restarts: int = -1,
        timeout_s: float = 30.0,
        deterministic: bool = False,
        actor_cpus: float = 1.0,
        address: str | None = None,
    ) -> None:
        self.env = _spec(env) if isinstance(env, str) else env
        self.actors = check_count("actors", actors, low=0)
        self.games = None if games is None else check_count("games", games)
        self.chunk = check_count("chunk", chunk)
        self.in_flight = check_count("in_flight", in_flight)
        self.sync_updates = check_count("sync_updates", sync_updates)
        self.max_staleness = check_count("max_staleness", max_staleness, low=0)
        if self.max_staleness < self.sync_updates:
            raise ValueError(
                f"max_staleness must be at least sync_updates, {sync_updates}, got {max_staleness}"
            )
        self.epsilons = None if epsilons is None else _checked_epsilons(epsilons)
        self.max_restarts = check_count("max_restarts", max_restarts, low=-1)
        self.timeout_s = check_number("timeout_s", timeout_s, 0.0, above=True)
        self.deterministic = bool(deterministic)
        self.actor_cpus = check_number("actor_cpus", actor_cpus, 0.0, above=True)
        self.address = address
        kwargs = env_kwargs or {}
        self.env_kwargs = [kwargs] if isinstance(kwargs, Mapping) else list(kwargs)
        if not all(isinstance(each, Mapping) for each in self.env_kwargs):
            raise TypeError(f"env_kwargs must be a mapping or a list of some, got {env_kwargs!r}")
        if isinstance(opponents, str):
            raise TypeError(f"opponents must be a list of names, got {opponents!r}")
        self.opponents = list(opponents)
        self._begin()

    def _begin(self) -> None:
        self._streams = []
        for number in range(self.actors):
            kwargs = dict(self.env_kwargs[number % len(self.env_kwargs)])
            if self.opponents:
                kwargs["opponent"] = self.opponents[number % len(self.opponents)]
            self._streams.append(Stream(number, kwargs))
        self._ledger = Ledger(self.actors, self.max_staleness)
        self.version = -1
        self._asked = self._updates = self._seed = 0
        self._rate: float | None = None
        self._weights: dict[int, Any] = {}  # Ray's references, by version
        self._shapes: dict[str, torch.Size] = {}
        self._rows = self._most = 1
        self._ray: Any = None
        self._plan: Any = None
        self._actor_class: Any = None

    @property
    def statistics(self) -> dict[str, Any]:
        """What was counted so far, see `Ledger.statistics`."""
        return self._ledger.statistics

    @contextmanager
    def session(self, model: Any) -> Iterator[RayCollector | None]:
        """The actors live while the block lasts; see `Collector`.

        Raises:
            ValueError: The cluster is not there or too small, an actor cannot make its environment,
                or the model does not fit.
        """
        if self.actors == 0:
            yield None
            return
        self._begin()
        self._rows = model.n_envs
        games = self.games or self._rows
        if games % self._rows:
            raise ValueError(f"games must be a multiple of the model's {self._rows}, got {games}")
        self._most = self._most_under_way(math.ceil(model.updates_for(self.chunk * games)))
        self._shapes = {name: value.shape for name, value in model.playing_weights().items()}
        saved = model.collector_state
        fresh = int(torch.randint(2**31, ())) if model.seed is None else model.seed
        self._seed = fresh if saved is None else saved["seed"]
        plan = ActorPlan(
            env=self.env,
            games=games,
            chunk=self.chunk,
            seed=self._seed,
            explorer=model.explorer_elsewhere(),
            mask_source=model.legal_actions.source,
            observation_space=model.observation_space,
            action_space=model.action_space,
        )
        with connected(self.address) as self._ray:
            self._check_cpus()
            # Replacing actors here, and not by Ray, keeps it known which process was asked what.
            self._actor_class = self._ray.remote(Actor).options(
                num_cpus=self.actor_cpus, max_restarts=0, max_task_retries=0
            )
            self._plan = self._ray.put(plan)
            try:
                self._start_all()
                if saved is not None:
                    self._load_state_dict(saved)
                self._ledger.begin()
                yield self
                model.collector_state = self.state_dict()
                self._put(model.num_updates, model.playing_weights())
                if model.verbose >= 1:
                    print(self._ledger.table())
            finally:
                for stream in self._streams:
                    with suppress(Exception):  # the cluster may be gone
                        stream.kill(self._ray)
                self._weights, self._plan = {}, None

    def _most_under_way(self, updates: int) -> int:
        """Chunks that may be asked for at a time, if each brings so many updates."""
        most = self.actors * self.in_flight
        if updates:
            most = min(most, 1 + (self.max_staleness - self.sync_updates + 1) // updates)
        if most < self.actors:
            warnings.warn(
                f"actors: of {self.actors} only {most} can work at a time: a chunk brings"
                f" {updates} updates, and max_staleness is {self.max_staleness}",
                stacklevel=4,
            )
        return most

    def publish(
        self, version: int, weights: Mapping[str, Tensor], exploration_rate: float | None
    ) -> None:
        """See `Collector`; only every `sync_updates`-th version goes out."""
        self._updates, self._rate = version, exploration_rate
        if self.version < 0 or version - self.version >= self.sync_updates:
            self._put(version, weights)

    def collect(self, num_steps: int) -> list[ParallelStep]:
        """See `Collector`: the steps of one chunk, whatever `num_steps` is."""
        while True:
            self.ask()
            began = time.perf_counter()
            chunk = self.receive()
            self._ledger.waiting_seconds += time.perf_counter() - began
            if self._ledger.accept(chunk, self._updates):
                return list(chunk.steps(self._rows))

    def state_dict(self) -> dict[str, Any]:
        """What a run needs to go on: where the games stand, and what was asked for."""
        weights = {
            str(version): {name: torch.tensor(value) for name, value in arrays.items()}
            for version, arrays in (
                (version, self._ray.get(reference)) for version, reference in self._weights.items()
            )
        }
        return {
            "asked": self._asked,
            "ledger": self._ledger.state_dict(),
            "seed": self._seed,
            "streams": [each.state_dict() for each in self._streams],
            "version": self.version,
            "weights": weights,
        }

    def _load_state_dict(self, state: Mapping[str, Any]) -> None:
        if len(state["streams"]) != self.actors:
            raise ValueError(
                f"actors: the run that goes on has {len(state['streams'])}, got {self.actors}"
            )
        for version, weights in state["weights"].items():
            self._put(int(version), weights)
        self.version, self._asked = state["version"], state["asked"]
        self._ledger.load_state_dict(state["ledger"])
        for stream, saved in zip(self._streams, state["streams"], strict=True):
            stream.load_state_dict(saved)
            self._submit_all(stream)

    def _check_cpus(self) -> None:
        there = self._ray.cluster_resources().get("CPU", 0.0)
        if self.actors * self.actor_cpus > there:
            raise ValueError(
                f"actors: {self.actors} need {self.actors * self.actor_cpus:g} CPUs, the cluster"
                f" has {there:g}; take fewer, or a smaller actor_cpus"
            )

    def _start_all(self) -> None:
        started = [each.start(self._actor_class, self._plan) for each in self._streams]
        seconds = max(self.timeout_s, START_SECONDS)
        _, waiting = self._ray.wait(started, num_returns=len(started), timeout=seconds)
        if waiting:
            raise ValueError(
                f"actors: {len(waiting)} of {self.actors} had not started after {seconds:g} s;"
                f" CPUs free: {self._ray.available_resources().get('CPU', 0):g}"
            )
        for number, reference in enumerate(started):
            try:
                self._ray.get(reference)
            except self._ray.exceptions.RayError as error:
                raise ValueError(f"actor {number}: {_reason(error)}") from error

    def _put(self, version: int, weights: Mapping[str, Tensor]) -> None:
        shapes = {name: value.shape for name, value in weights.items()}
        for name in shapes.keys() | self._shapes.keys():
            given, need = shapes.get(name), self._shapes.get(name)
            if given != need:
                shown = [None if each is None else tuple(each) for each in (given, need)]
                raise ValueError(f"weights: {name} has the shape {shown[0]}, need {shown[1]}")
        if version not in self._weights:
            arrays = {name: value.detach().cpu().numpy() for name, value in weights.items()}
            self._weights[version] = self._ray.put(arrays)
        self.version = version

    def ask(self) -> None:
        """Ask for chunks until so many are under way as may be."""
        while sum(len(each.requests) for each in self._streams) < self._most:
            stream = min(
                self._streams,
                key=lambda each: (len(each.requests), each.next_sequence, each.number),
            )
            rate = self._epsilon(stream.number)
            stream.requests.append(Request(self._asked, stream.next_sequence, self.version, rate))
            self._asked += 1
            stream.next_sequence += 1
            stream.submit(len(stream.requests) - 1, self._weights[self.version])
        used = {request.version for each in self._streams for request in each.requests}
        used.add(self.version)
        self._weights = {name: self._weights[name] for name in self._weights if name in used}

    def _epsilon(self, number: int) -> float | None:
        if self._rate is None or self.epsilons is None:
            return self._rate
        epsilon, alpha = self.epsilons
        return float(epsilon ** (1 + alpha * number / max(1, self.actors - 1)))

    def receive(self) -> Any:
        """The next chunk, after as many replacements of actors as that takes."""
        while True:
            asked = [each for each in self._streams if each.requests]
            asked.sort(key=lambda each: each.requests[0].number)
            if self.deterministic:
                asked = asked[:1]
            by_reference = {each.requests[0].references[0]: each for each in asked}
            patience = min(each.patience(self._ray, self.timeout_s) for each in asked)
            ready, _ = self._ray.wait(list(by_reference), timeout=max(0.0, patience))
            if not ready:
                for stream in asked:
                    if stream.patience(self._ray, self.timeout_s) <= 0:
                        self._replace(stream, f"did not answer for {self.timeout_s:g} s")
                continue
            stream = by_reference[ready[0]]
            try:
                chunk, games = self._ray.get(stream.requests[0].references)
            except self._ray.exceptions.RayTaskError as error:
                self._replace(stream, _reason(error), error)
            except self._ray.exceptions.RayError as error:
                self._replace(stream, f"was lost: {type(error).__name__}")
            else:
                stream.answered(games)
                return chunk

    def _replace(self, stream: Stream, reason: str, raised: Exception | None = None) -> None:
        """Start an actor anew and ask it for what the one before did not give."""
        account = self._ledger.actors[stream.number]
        account.restarts += 1
        stream.failures, stream.lost = (
            (stream.failures + 1, stream.lost) if raised else (stream.failures, stream.lost + 1)
        )
        where = f"actor {stream.number}: chunk {stream.requests[0].sequence}"
        if stream.failures >= RAISED_IN_A_ROW:
            raise ValueError(f"{where} failed {stream.failures} times: {reason}") from raised
        if 0 <= self.max_restarts < account.restarts:
            raise ChildProcessError(
                f"{where}: the actor {reason}; it was replaced {self.max_restarts} times,"
                " which is max_restarts"
            ) from raised
        if stream.lost >= LOST_IN_A_ROW:
            raise ChildProcessError(f"{where}: {stream.lost} times in a row the actor {reason}")
        stream.kill(self._ray)
        stream.generation += 1
        stream.start(self._actor_class, self._plan)
        if not self.deterministic:
            for request in stream.requests:
                request.version = self.version
        self._submit_all(stream)

    def _submit_all(self, stream: Stream) -> None:
        for place, request in enumerate(stream.requests):
            stream.submit(place, self._weights[request.version])


def _spec(env_id: str) -> EnvSpec:
    """What is registered in this process, where an actor's would not find it."""
    try:
        return gymnasium.spec(env_id)
    except gymnasium.error.Error as error:
        raise ValueError(f"env: {one_line(error)}") from error


def _checked_epsilons(epsilons: Any) -> tuple[float, float]:
    if not isinstance(epsilons, (list, tuple)) or len(epsilons) != 2:
        raise ValueError(f"epsilons must be a pair (epsilon, alpha) or None, got {epsilons!r}")
    epsilon = check_number("epsilons[0]", epsilons[0], 0.0, 1.0)
    return epsilon, check_number("epsilons[1]", epsilons[1], 0.0)


def _reason(error: Exception) -> str:
    """What was raised in an actor, in one line."""
    cause = getattr(error, "cause", None)
    if not isinstance(cause, BaseException):
        return f"{type(error).__name__}: {one_line(error)}"
    return f"{type(cause).__name__}: {one_line(cause)}"
