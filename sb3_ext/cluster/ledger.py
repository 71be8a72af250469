"""What came from the actors and what became of it; no transition is too old."""

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
        """Count a chunk that arrived after so many updates; False: it must not be stored."""
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
        """Go on counting where `state_dict` was taken."""
        self.actors, self.counts = copy.deepcopy([*state["actors"]]), dict(state["counts"])
