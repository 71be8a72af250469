"""What came from the actors and what became of it; no transition counts twice, none is too old."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sb3_ext.cluster.chunk import Chunk


@dataclass
class ActorAccount:
    """Counts of one actor; `next_sequence` is the chunk of it that comes next."""

    next_sequence: int = 0
    transitions: int = 0
    episodes: int = 0
    restarts: int = 0
    busy_seconds: float = 0.0


class Ledger:
    """Judges chunks and counts them.

    Args:
        num_actors: How many actors there are.
        max_staleness: Updates that may have been made between the weights that played a chunk and
            its arrival in the replay buffer.
    """

    def __init__(self, num_actors: int, max_staleness: int) -> None:
        self.max_staleness = max_staleness
        self.actors = [ActorAccount() for _ in range(num_actors)]
        self.chunks = {"accepted": 0, "duplicate": 0, "stale": 0}
        self.sums = {"episodes": 0, "returns": 0.0, "lengths": 0, "bytes": 0}
        self.staleness_sum = self.staleness_max = 0
        self.waiting_seconds = self.total_seconds = 0.0
        self._counted_until = time.perf_counter()

    def accept(self, chunk: Chunk, updates: int) -> bool:
        """Count a chunk that arrived after so many updates; False: it must not be stored."""
        account = self.actors[chunk.actor]
        self.sums["bytes"] += chunk.num_bytes
        account.busy_seconds += chunk.seconds
        if chunk.sequence < account.next_sequence:
            self.chunks["duplicate"] += 1
            return False
        account.next_sequence = chunk.sequence + 1
        staleness = updates - chunk.version
        if staleness > self.max_staleness:
            self.chunks["stale"] += 1
            return False
        self.chunks["accepted"] += 1
        self.staleness_sum += staleness
        self.staleness_max = max(self.staleness_max, staleness)
        episodes, returns, lengths = chunk.episode_sums()
        self.sums["episodes"] += episodes
        self.sums["returns"] += returns
        self.sums["lengths"] += lengths
        account.episodes += episodes
        account.transitions += chunk.actions.size
        return True

    def begin(self) -> None:
        """The clock of the actors begins to run."""
        self._counted_until = time.perf_counter()

    @property
    def statistics(self) -> dict[str, Any]:
        """Everything counted: chunks, sums over the accepted ones, seconds, and `actors`."""
        now = time.perf_counter()
        self.total_seconds += now - self._counted_until
        self._counted_until = now
        actors = [
            {**asdict(each), "idle_seconds": max(0.0, self.total_seconds - each.busy_seconds)}
            for each in self.actors
        ]
        return {
            "received": sum(self.chunks.values()),
            **self.chunks,
            **self.sums,
            "restarts": sum(each.restarts for each in self.actors),
            "staleness_mean": self.staleness_sum / max(1, self.chunks["accepted"]),
            "staleness_max": self.staleness_max,
            "waiting_seconds": self.waiting_seconds,
            "actors": actors,
        }

    def table(self) -> str:
        """The statistics as text: a line for each actor, and two for the learner."""
        counted = self.statistics
        lines = ["actor  transitions  episodes  restarts  seconds busy    idle"]
        lines += [
            f"{number:5}  {each['transitions']:11,}  {each['episodes']:8,}  {each['restarts']:8}"
            f"  {each['busy_seconds']:12.1f}  {each['idle_seconds']:6.1f}"
            for number, each in enumerate(counted["actors"])
        ]
        lines.append(
            f"chunks: {counted['received']} received, {counted['accepted']} accepted,"
            f" {counted['duplicate']} duplicate, {counted['stale']} stale,"
            f" {counted['bytes'] / 1e6:,.1f} MB"
        )
        lines.append(
            f"learner: {counted['waiting_seconds']:.1f} s waiting; staleness in updates:"
            f" {counted['staleness_mean']:.1f} on average, {counted['staleness_max']} at most"
        )
        return "\n".join(lines)

    def state_dict(self) -> dict[str, Any]:
        """All counts, as plain data."""
        counted = self.statistics
        names = ("staleness_sum", "staleness_max", "waiting_seconds", "total_seconds")
        plain = {name: getattr(self, name) for name in names}
        accounts = [asdict(each) for each in self.actors]
        chunks = {name: counted[name] for name in self.chunks}
        return {**plain, "actors": accounts, "chunks": chunks, "sums": dict(self.sums)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on counting where `state_dict` was taken."""
        for name in ("staleness_sum", "staleness_max", "waiting_seconds", "total_seconds"):
            setattr(self, name, state[name])
        self.actors = [ActorAccount(**each) for each in state["actors"]]
        self.chunks, self.sums = dict(state["chunks"]), dict(state["sums"])
