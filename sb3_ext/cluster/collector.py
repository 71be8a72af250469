"""Many actors, one learner: a `Collector` whose chunks come from processes of a Ray cluster.

docs/cluster.md says what is promised.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor

from resgym.players.trust import imported_modules
from sb3_ext.checkpoints.format import errors_named
from sb3_ext.cluster.actor import ActorPlan, vector_env_spec
from sb3_ext.cluster.chunk import Chunk
from sb3_ext.cluster.connection import connected
from sb3_ext.cluster.crew import Crew
from sb3_ext.cluster.ledger import Ledger
from sb3_ext.cluster.published import PublishedWeights
from sb3_ext.cluster.stream import LONGEST_WAIT
from sb3_ext.config.arguments import check_arguments
from sb3_ext.config.checks import check_count, check_number, shown
from sb3_ext.off_policy.collector import Collector, ParallelStep
from sb3_ext.off_policy.sampled import SampledCollector, WholeGames
from sb3_ext.off_policy.sampling import SamplingConfig

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
        sampling: A `SamplingConfig` or a mapping of its names; None: all that is played, a chunk
            at a time.

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
        sampling: SamplingConfig | Mapping[str, Any] | None = None,
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
        self.sampling: SamplingConfig | None = None
        if sampling is not None:
            with errors_named("sampling", ValueError):
                self.sampling = SamplingConfig.read(sampling)
            if deterministic and self.sampling.max_wait_time is not None:
                raise ValueError("deterministic must be false with sampling.max_wait_time")
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
        self._weights: Any = None
        self._crew: Any = None
        self._games: dict[str, WholeGames] = {}
        self._sampled = {"epochs": 0, "samples": 0, "late_epochs": 0, "cut_games": 0}

    @property
    def statistics(self) -> dict[str, Any]:
        """What was counted so far, see `Ledger.statistics` and `SampledCollector`."""
        counted = self._ledger.statistics
        if self.sampling is not None:
            counted |= self._sampled
            for each in self._games.values():
                for name, count in each.counts.items():
                    counted[name] = counted.get(name, 0) + count
        return counted

    @contextmanager
    def session(self, model: Any) -> Iterator[Collector | None]:
        """The actors live while the block lasts; see `Collector`.

        Raises:
            ValueError: The cluster is not there or too small, an actor cannot make its environment,
                or the model does not fit.
        """
        if self.actors == 0 or (self.sampling is not None and self.sampling.force_sync):
            own = None if self.sampling is None else SampledCollector(self.sampling)
            with nullcontext() if own is None else own.session(model) as collector:
                yield collector
            return
        self._ledger = Ledger(self.actors, self.max_staleness)
        self._rows = model.n_envs
        games = self.games or self._rows
        if games % self._rows:
            raise ValueError(f"games must be a multiple of the model's {self._rows}, got {games}")
        if self.sampling is not None:
            with errors_named("sampling", ValueError):
                self.sampling.check(games, model.evaluation_rows)
        self._games.clear()
        self._sampled = dict.fromkeys(self._sampled, 0)
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
            sampling=self.sampling,
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
                    self._load_games(saved)
                self.version = self._weights.newest
                self._ledger.begin()
                yield self
                model.collector_state = self.state_dict()
                self._publish(model.num_updates, model.playing_weights())
                if model.verbose >= 1:
                    print(self._ledger.table())
            finally:
                self._crew.stop()
                self._crew = self._weights = None

    def _env_kwargs_of(self, number: int) -> dict[str, Any]:
        kwargs = dict(self.env_kwargs[number % len(self.env_kwargs)])
        if self.opponents:
            kwargs["opponent"] = self.opponents[number % len(self.opponents)]
        return kwargs

    def _most_under_way(self, model: Any, transitions: int) -> int:
        """Chunks of so many transitions that may be asked for at a time."""
        most = self.actors * self.in_flight
        epoch = 0 if self.sampling is None else self.sampling.num_epoch_samples
        chunks = max(1, math.ceil(epoch / transitions))
        updates = math.ceil(model.updates_for(chunks * transitions))
        if updates:
            blocks = (self.max_staleness - self.sync_updates + 1) // updates
            most = min(most, 1 + chunks * blocks)
        if most < self.actors:
            warnings.warn(
                f"actors: of {self.actors} only {most} can work at a time:"
                f" {'a chunk brings' if chunks == 1 else f'{chunks} chunks bring'}"
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
        """See `Collector`: the steps of one chunk, or of an epoch, whatever `num_steps` is."""
        if self.sampling is not None:
            return self._epoch(self.sampling)
        while True:
            chunk = self.receive()
            assert chunk
            if self._ledger.accept(chunk, self._updates):
                return chunk.steps(self._rows)

    def receive(self, seconds: float | None = None) -> Chunk | None:
        """The next chunk, whatever the ledger will say of it; None if it took too long."""
        self._crew.ask(self._most, self._epsilon)
        began = time.perf_counter()
        chunk = self._crew.receive(self._ledger.actors, seconds)
        self._ledger.waiting_seconds += time.perf_counter() - began
        return chunk  # type: ignore[no-any-return]

    def _epoch(self, sampling: SamplingConfig) -> Iterator[ParallelStep]:
        """The steps of so many chunks as an epoch takes."""
        given, began, most = 0, time.perf_counter(), sampling.max_wait_time
        while given < sampling.num_epoch_samples:
            left = None if most is None or not given else began + most - time.perf_counter()
            chunk = self.receive(left and max(0.0, left))
            if chunk is None:
                self._sampled["late_epochs"] += 1
                break
            accepted = self._ledger.accept(chunk, self._updates)
            if accepted:
                self._sampled["cut_games"] += chunk.cut_games
            for step in self._kept(chunk, sampling, accepted):
                given += step.rewards.numel()
                self._sampled["samples"] += step.rewards.numel()
                yield step
        self._sampled["epochs"] += 1

    def _kept(self, chunk: Chunk, sampling: SamplingConfig, accepted: bool) -> list[ParallelStep]:
        """The steps of a chunk that become experience, or those of before that do now.

        All of a chunk is taken first, as a callback may end the run at any of its steps.
        """
        if sampling.min_trajectory_length == 1:
            return list(chunk.steps(self._rows)) if accepted else []
        kept = []
        for number, block in enumerate(chunk.steps(self._rows)):
            key = f"{chunk.actor}.{number}"
            if key not in self._games:
                self._games[key] = WholeGames(sampling.min_trajectory_length)
            if accepted:
                for step in block.each():
                    kept += self._games[key].add(step)
            elif self._ledger.was_stale:
                self._games[key].break_off()
        return kept

    def _load_games(self, saved: Mapping[str, Any]) -> None:
        if self.sampling is not None and "sampled" in saved:
            self._sampled = dict(saved["sampled"])
            for key, state in saved["games"].items():
                self._games[key] = WholeGames(self.sampling.min_trajectory_length)
                self._games[key].load_state_dict(state)

    def state_dict(self) -> dict[str, Any]:
        """What a run needs to go on: where the games stand, and what was asked for."""
        state = {
            "crew": self._crew.state_dict(),
            "ledger": self._ledger.state_dict(),
            "seed": self._seed,
            "weights": self._weights.state_dict(),
        }
        if self.sampling is not None:
            state["games"] = {key: each.state_dict() for key, each in self._games.items()}
            state["sampled"] = dict(self._sampled)
        return state

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
