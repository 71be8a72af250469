"""A `Collector` whose chunks come from actors in processes of a Ray cluster.

docs/cluster.md lists the guarantees.
"""

from __future__ import annotations

import copy
import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

import torch
from annotated_types import Ge, Le
from pydantic import model_validator
from torch import Tensor

from resgym.trust import imported_modules
from sb3_ext.cluster.actor import ActorPlan, vector_env_spec
from sb3_ext.cluster.chunk import Chunk, blocks
from sb3_ext.cluster.connection import connected
from sb3_ext.cluster.crew import Crew
from sb3_ext.config.checks import shown
from sb3_ext.config.sections import (
    Count,
    Fraction,
    Number,
    PositiveCount,
    PositiveNumber,
    Section,
    Whole,
    checked,
    read_section,
)
from sb3_ext.ddqn.collector import Collector, ParallelStep


def _pair(given: Any) -> Any:
    if not isinstance(given, (list, tuple)) or len(given) != 2:
        raise ValueError(f" must be a pair [epsilon, alpha], got {shown(given)}")
    return tuple(given)


class CollectorSettings(Section):
    """How actors collect."""

    env_kwargs: dict[str, Any] = {}  # noqa: RUF012
    """arguments of the environment"""
    actors: Count = 1
    """number of actors; 0 plays in the learner's process, as without a collector"""
    games: PositiveCount | None = None
    """games of each actor, a multiple of the model's rows; null: as many as the model"""
    chunk: PositiveCount = 64
    """parallel steps that are sent together"""
    in_flight: PositiveCount = 2
    """chunks that each actor may be asked for ahead"""
    sync_updates: PositiveCount = 100
    """updates between two versions of the weights"""
    max_staleness: Count = 400
    """largest age of a chunk's weights in updates, at least sync_updates; older ones are dropped"""
    epsilons: Annotated[tuple[Fraction, Annotated[float, Number, Ge(0)]], checked(_pair)] | None = (
        None
    )
    """(epsilon, alpha): actor i of K explores with epsilon^(1 + alpha i / (K - 1)) (Horgan et al.
    2018) once learning has begun; null: all at the model's rate"""
    opponents: list[str] = []  # noqa: RUF012
    """names of players: actor i plays against entry i, cyclically"""
    max_restarts: Annotated[int, Whole, Ge(-1)] = -1
    """processes that one chunk may lose before the run ends; -1: no limit"""
    timeout_s: Annotated[PositiveNumber, Le(86_400)] = 120.0
    """seconds without any chunk after which the run ends with an error"""
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


class Ledger:
    """Judges chunks and counts them.

    Args:
        num_actors: How many actors there are.
        max_staleness: Updates that may have been made between the weights that played a chunk and
            its arrival in the replay buffer.

    Attributes:
        counts: Chunks, sums over the accepted ones, staleness and seconds.
        actors: The same of each.
    """

    def __init__(self, num_actors: int, max_staleness: int) -> None:
        self.max_staleness = max_staleness
        names = (
            *("accepted", "stale", "episodes", "returns", "lengths", "staleness_sum"),
            *("staleness_max", "waiting_seconds", "total_seconds"),
        )
        self.counts: dict[str, Any] = dict.fromkeys(names, 0)
        own = ("transitions", "episodes", "busy_seconds")
        self.actors: list[dict[str, Any]] = [dict.fromkeys(own, 0) for _ in range(num_actors)]
        self._counted_until = time.perf_counter()

    def accept(self, chunk: Chunk, updates: int) -> bool:
        """Count a chunk that arrived after this many updates; False: it must not be stored."""
        account, counts, steps = self.actors[chunk.actor], self.counts, chunk.steps
        account["busy_seconds"] += chunk.seconds
        staleness = updates - chunk.version
        if staleness > self.max_staleness:
            counts["stale"] += 1
            return False
        counts["accepted"] += 1
        counts["staleness_sum"] += staleness
        counts["staleness_max"] = max(counts["staleness_max"], staleness)
        episode: Any = steps.episode
        episodes = int(episode["ended"].sum())
        counts["episodes"] += episodes
        counts["returns"] += float(episode["r"].sum(dtype="f8"))
        counts["lengths"] += int(episode["l"].sum())
        account["episodes"] += episodes
        account["transitions"] += steps.actions.size
        return True

    @property
    def statistics(self) -> dict[str, Any]:
        """Everything counted: chunks, sums over the accepted ones, seconds, and `actors`."""
        now, counts = time.perf_counter(), self.counts
        counts["total_seconds"] += now - self._counted_until
        self._counted_until = now
        actors = [
            {**each, "idle_seconds": max(0.0, counts["total_seconds"] - each["busy_seconds"])}
            for each in self.actors
        ]
        return {
            "received": counts["accepted"] + counts["stale"],
            **{name: value for name, value in counts.items() if not name.endswith("_sum")},
            "staleness_mean": counts["staleness_sum"] / max(1, counts["accepted"]),
            "actors": actors,
        }

    def table(self) -> str:
        """The statistics as text: a line for each actor, and two for the learner."""
        counted = self.statistics
        names = ("transitions", "episodes", "busy_seconds", "idle_seconds")
        lines = ["  ".join(("actor", *names))]
        for number, each in enumerate(counted["actors"]):
            figures = [f"{each[name]:{len(name)},.0f}" for name in names]
            lines.append("  ".join((f"{number:5}", *figures)))
        counted |= {name: round(value, 1) for name, value in counted.items() if name != "actors"}
        return "\n".join(lines) + (
            "\nchunks: {received} received, {accepted} accepted, {stale} stale\n"
            "learner: {waiting_seconds} s waiting; staleness in updates: {staleness_mean} on "
            "average, {staleness_max} at most"
        ).format(**counted)

    def state_dict(self) -> dict[str, Any]:
        """All counts, as plain data."""
        _ = self.statistics
        return copy.deepcopy({"actors": self.actors, "counts": self.counts})

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue counting from a saved `state_dict`."""
        self.actors, self.counts = copy.deepcopy([*state["actors"]]), dict(state["counts"])


class RayCollector:
    """Collects with actors, each with games of its own; see `Collector`.

    `model.learn(n, collector=RayCollector("resgym/HironakaHost-v0", actors=8))`. Whole chunks go
    into the replay buffer, so `learn` ends with the chunk that completes `n`.

    Args:
        env: Id of a vector environment, or a function of `num_envs` and `env_kwargs` that makes
            one. Its games must have `state_dict` and `load_state_dict`.
        env_kwargs: Its arguments, as in `CollectorSettings`.
        **settings: See `CollectorSettings`.

    Attributes:
        settings: Those.
        version: Updates that made the weights published last.

    Raises:
        ValueError, TypeError: An argument out of its range or of another type, in one line.
    """

    def __init__(
        self,
        env: str | Callable[..., Any],
        env_kwargs: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        if not isinstance(env, str) and not callable(env):
            raise TypeError(f"env must be an id or a function, got {shown(env)}")
        self.env = vector_env_spec(env) if isinstance(env, str) else env
        given = settings if env_kwargs is None else {**settings, "env_kwargs": env_kwargs}
        self.settings = read_section(CollectorSettings, given)
        self.actors = self.settings.actors
        self._ledger = Ledger(self.actors, self.settings.max_staleness)
        self.version = -1
        self._updates = self._seed = 0
        self._rate: float | None = None
        self._rows = self._most = 1
        self._cut: Any = None
        self._crew: Any = None

    @property
    def statistics(self) -> dict[str, Any]:
        """What was counted so far, see `Ledger.statistics`."""
        return self._ledger.statistics

    @contextmanager
    def session(self, model: Any) -> Iterator[Collector | None]:
        """The actors live while the block lasts; see `Collector`.

        Raises:
            ValueError: The cluster is not there or too small, or the model does not fit.
        """
        if self.actors == 0:
            yield None
            return
        self._ledger = Ledger(self.actors, self.settings.max_staleness)
        self._rows, self._cut = model.n_envs, model.replay_buffer.cut
        games = self.settings.games or self._rows
        if games % self._rows:
            raise ValueError(f"games must be a multiple of the model's {self._rows}, got {games}")
        saved = model.collector_state
        fresh = int(torch.randint(2**31, ())) if model.seed is None else model.seed
        self._seed = fresh if saved is None else saved["seed"]
        plan = ActorPlan(
            env=self.env,
            games=games,
            chunk=self.settings.chunk,
            seed=self._seed,
            explorer=model.explorer_elsewhere(),
            mask_source=model.legal_actions.source,
            observation_space=model.observation_space,
            action_space=model.action_space,
            modules=imported_modules(),
        )
        with connected() as ray:
            self._crew = Crew(
                ray,
                plan,
                [self._env_kwargs_of(number) for number in range(self.actors)],
                cpus=self.settings.actor_cpus,
                timeout=self.settings.timeout_s,
                max_restarts=self.settings.max_restarts,
                in_order=self.settings.deterministic,
            )
            self._most = self._most_under_way(model, self.settings.chunk * games)
            try:
                if saved is not None:
                    self._crew.load_state_dict(saved["crew"])
                    self._ledger.load_state_dict(saved["ledger"])
                self.version = self._crew.version
                yield self
                model.collector_state = self.state_dict()
                if model.verbose >= 1:
                    print(self._ledger.table())
            finally:
                self._crew.stop()
                self._cut()
                self._crew = None

    def _env_kwargs_of(self, number: int) -> dict[str, Any]:
        opponents = self.settings.opponents
        own = {"opponent": opponents[number % len(opponents)]} if opponents else {}
        return {**self.settings.env_kwargs, **own}

    def _most_under_way(self, model: Any, transitions: int) -> int:
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
        self._updates, self._rate = version, exploration_rate
        if self.version < 0 or version - self.version >= self.settings.sync_updates:
            self._crew.publish(version, weights)
            self.version = version

    def collect(self, num_steps: int) -> Iterator[ParallelStep]:
        """See `Collector`: the steps of one chunk, whatever `num_steps` is."""
        while True:
            chunk = self.receive()
            if self._ledger.accept(chunk, self._updates):
                for step in blocks(chunk.steps, self._rows):
                    self._cut()  # other games than those stored last
                    yield step
                return

    def receive(self) -> Chunk:
        """The next chunk, whatever the ledger will say of it."""
        self._crew.ask(self._most, self._epsilon)
        began = time.perf_counter()
        chunk = self._crew.receive()
        self._ledger.counts["waiting_seconds"] += time.perf_counter() - began
        return chunk  # type: ignore[no-any-return]

    def state_dict(self) -> dict[str, Any]:
        """What a run needs to continue: where the games stand, and what was asked for."""
        return {
            "crew": self._crew.state_dict(),
            "ledger": self._ledger.state_dict(),
            "seed": self._seed,
        }

    def _epsilon(self, number: int) -> float | None:
        if self._rate is None or self.settings.epsilons is None:
            return self._rate
        epsilon, alpha = self.settings.epsilons
        return float(epsilon ** (1 + alpha * number / max(1, self.actors - 1)))
