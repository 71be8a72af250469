"""What came from the actors and what became of it; no transition counts twice, none is too old."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from typing import Any

from sb3_ext.cluster.chunk import Chunk


class Ledger:
    """Judges chunks and counts them.

    Args:
        num_actors: How many actors there are.
        max_staleness: Updates that may have been made between the weights that played a chunk and
            its arrival in the replay buffer.

    Attributes:
        counts: Chunks, sums over the accepted ones, staleness and seconds.
        actors: The same of each; `next_sequence` is the chunk of it that comes next.
    """

    def __init__(self, num_actors: int, max_staleness: int) -> None:
        self.max_staleness = max_staleness
        names = ["accepted", "duplicate", "stale", "episodes", "returns", "lengths", "bytes"]
        names += ["staleness_sum", "staleness_max", "waiting_seconds", "total_seconds"]
        self.counts: dict[str, Any] = dict.fromkeys(names, 0)
        own = ("next_sequence", "transitions", "episodes", "restarts", "busy_seconds")
        self.actors: list[dict[str, Any]] = [dict.fromkeys(own, 0) for _ in range(num_actors)]
        self.begin()

    def accept(self, chunk: Chunk, updates: int) -> bool:
        """Count a chunk that arrived after so many updates; False: it must not be stored."""
        account, counts = self.actors[chunk.actor], self.counts
        counts["bytes"] += chunk.num_bytes
        account["busy_seconds"] += chunk.seconds
        if chunk.sequence < account["next_sequence"]:
            counts["duplicate"] += 1
            return False
        account["next_sequence"] = chunk.sequence + 1
        staleness = updates - chunk.version
        if staleness > self.max_staleness:
            counts["stale"] += 1
            return False
        counts["accepted"] += 1
        counts["staleness_sum"] += staleness
        counts["staleness_max"] = max(counts["staleness_max"], staleness)
        episodes, returns, lengths = chunk.episode_sums()
        counts["episodes"] += episodes
        counts["returns"] += returns
        counts["lengths"] += lengths
        account["episodes"] += episodes
        account["transitions"] += chunk.actions.size
        return True

    def begin(self) -> None:
        """The clock of the actors begins to run."""
        self._counted_until = time.perf_counter()

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
            "received": counts["accepted"] + counts["duplicate"] + counts["stale"],
            **{name: value for name, value in counts.items() if not name.endswith("_sum")},
            "restarts": sum(each["restarts"] for each in self.actors),
            "staleness_mean": counts["staleness_sum"] / max(1, counts["accepted"]),
            "actors": actors,
        }

    def table(self) -> str:
        """The statistics as text: a line for each actor, and two for the learner."""
        counted = self.statistics
        names = ("transitions", "episodes", "restarts", "busy_seconds", "idle_seconds")
        lines = ["  ".join(("actor", *names))]
        for number, each in enumerate(counted["actors"]):
            figures = [f"{each[name]:{len(name)},.0f}" for name in names]
            lines.append("  ".join((f"{number:5}", *figures)))
        lines.append(
            f"chunks: {counted['received']} received, {counted['accepted']} accepted, "
            f"{counted['duplicate']} duplicate, {counted['stale']} stale, "
            f"{counted['bytes'] / 1e6:,.1f} MB"
        )
        lines.append(
            f"learner: {counted['waiting_seconds']:.1f} s waiting; staleness in updates: "
            f"{counted['staleness_mean']:.1f} on average, {counted['staleness_max']} at most"
        )
        return "\n".join(lines)

    def state_dict(self) -> dict[str, Any]:
        """All counts, as plain data."""
        _ = self.statistics
        return copy.deepcopy({"actors": self.actors, "counts": self.counts})

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on counting where `state_dict` was taken."""
        self.actors, self.counts = copy.deepcopy([*state["actors"]]), dict(state["counts"])
