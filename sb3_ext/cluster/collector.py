"""Many actors, one learner: a `Collector` whose chunks come from processes of a Ray cluster.

docs/cluster.md says what is promised.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from resgym.trust import imported_modules
from sb3_ext.cluster.actor import ActorPlan, vector_env_spec
from sb3_ext.cluster.chunk import Chunk
from sb3_ext.cluster.connection import connected
from sb3_ext.cluster.crew import Crew
from sb3_ext.cluster.ledger import Ledger
from sb3_ext.cluster.published import PublishedWeights
from sb3_ext.cluster.stream import LONGEST_WAIT
from sb3_ext.config.arguments import check_arguments
from sb3_ext.config.checks import check_count, check_number, shown
from sb3_ext.ddqn.collector import Collector, ParallelStep

SMALLEST_SHARE = 1e-4
"""Of a processor, that Ray can reserve."""


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
        self.env = vector_env_spec(env) if isinstance(env, str) else env
        if not isinstance(env, str) and not callable(env):
            raise TypeError(f"env must be an id or a function, got {shown(env)}")
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
        self.timeout_s = check_number("timeout_s", timeout_s, 0.0, LONGEST_WAIT, above=True)
        check_arguments(RayCollector, {"deterministic": deterministic, "address": address})
        self.deterministic = deterministic
        self.actor_cpus = check_number("actor_cpus", actor_cpus, SMALLEST_SHARE)
        self.address = address
        kwargs = {} if env_kwargs is None else env_kwargs
        kwargs = [kwargs] if isinstance(kwargs, Mapping) else kwargs
        if not _all_are(kwargs, Mapping) or not all(_all_are([*each], str) for each in kwargs):
            raise TypeError(
                f"env_kwargs must be a mapping of names or a list of some, got {shown(env_kwargs)}"
            )
        self.env_kwargs = list(kwargs)
        if opponents and not _all_are(opponents, str):
            raise TypeError(f"opponents must be a list of names, got {shown(opponents)}")
        self.opponents = list(opponents or ())
        self._ledger = Ledger(self.actors, self.max_staleness)
        self.version = -1
        self._updates = self._seed = 0
        self._rate: float | None = None
        self._rows = self._most = 1
        self._cut: Any = None
        self._weights: Any = None
        self._crew: Any = None

    @property
    def statistics(self) -> dict[str, Any]:
        """What was counted so far, see `Ledger.statistics`."""
        return self._ledger.statistics

    @contextmanager
    def session(self, model: Any) -> Iterator[Collector | None]:
        """The actors live while the block lasts; see `Collector`.

        Raises:
            ValueError: The cluster is not there or too small, an actor cannot make its environment,
                or the model does not fit.
        """
        if self.actors == 0:
            yield None
            return
        self._ledger = Ledger(self.actors, self.max_staleness)
        self._rows, self._cut = model.n_envs, model.replay_buffer.cut
        games = self.games or self._rows
        if games % self._rows:
            raise ValueError(f"games must be a multiple of the model's {self._rows}, got {games}")
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
            modules=imported_modules(),
        )
        with connected(self.address) as ray:
            self._weights = PublishedWeights(ray, model.playing_weights())
            self._crew = Crew(
                ray,
                plan,
                [self._env_kwargs_of(number) for number in range(self.actors)],
                self._weights,
                cpus=self.actor_cpus,
                timeout=self.timeout_s,
                max_restarts=self.max_restarts,
                in_order=self.deterministic,
            )
            self._most = self._most_under_way(model, self.chunk * games)
            try:
                self._crew.start()
                if saved is not None:
                    self._weights.load_state_dict(saved["weights"])
                    self._crew.load_state_dict(saved["crew"])
                    self._ledger.load_state_dict(saved["ledger"])
                self.version = self._weights.newest
                self._ledger.begin()
                yield self
                model.collector_state = self.state_dict()
                self._publish(model.num_updates, model.playing_weights())
                if model.verbose >= 1:
                    print(self._ledger.table())
            finally:
                self._crew.stop()
                self._cut()
                self._crew = self._weights = None

    def _env_kwargs_of(self, number: int) -> dict[str, Any]:
        kwargs = dict(self.env_kwargs[number % len(self.env_kwargs)])
        if self.opponents:
            kwargs["opponent"] = self.opponents[number % len(self.opponents)]
        return kwargs

    def _most_under_way(self, model: Any, transitions: int) -> int:
        """Chunks of so many transitions that may be asked for at a time."""
        most = self.actors * self.in_flight
        updates = math.ceil(model.updates_for(transitions))
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
            self._publish(version, weights)

    def _publish(self, version: int, weights: Mapping[str, Tensor]) -> None:
        self._weights.put(version, weights)
        self.version = version

    def collect(self, num_steps: int) -> Iterator[ParallelStep]:
        """See `Collector`: the steps of one chunk, whatever `num_steps` is."""
        while True:
            chunk = self.receive()
            if self._ledger.accept(chunk, self._updates):
                for step in chunk.steps(self._rows):
                    self._cut()  # other games than those stored last
                    yield step
                return

    def receive(self) -> Chunk:
        """The next chunk, whatever the ledger will say of it."""
        self._crew.ask(self._most, self._epsilon)
        began = time.perf_counter()
        chunk = self._crew.receive(self._ledger.actors)
        self._ledger.waiting_seconds += time.perf_counter() - began
        return chunk  # type: ignore[no-any-return]

    def state_dict(self) -> dict[str, Any]:
        """What a run needs to go on: where the games stand, and what was asked for."""
        return {
            "crew": self._crew.state_dict(),
            "ledger": self._ledger.state_dict(),
            "seed": self._seed,
            "weights": self._weights.state_dict(),
        }

    def _epsilon(self, number: int) -> float | None:
        if self._rate is None or self.epsilons is None:
            return self._rate
        epsilon, alpha = self.epsilons
        return float(epsilon ** (1 + alpha * number / max(1, self.actors - 1)))


def _all_are(values: Any, kind: type) -> bool:
    """Whether something is a list with such items; one of names may be empty."""
    if not isinstance(values, (list, tuple)) or (kind is not str and not values):
        return False
    return all(isinstance(each, kind) for each in values)


def _checked_epsilons(epsilons: Any) -> tuple[float, float]:
    if not isinstance(epsilons, (list, tuple)) or len(epsilons) != 2:
        raise ValueError(f"epsilons must be a pair (epsilon, alpha) or None, got {epsilons!r}")
    epsilon = check_number("epsilons[0]", epsilons[0], 0.0, 1.0)
    return epsilon, check_number("epsilons[1]", epsilons[1], 0.0)
