"""Trees of charts as data: what growing returns and all writers read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from resgym.game.exact import Ending, Position, WeightedPosition
from resgym.game.spec import Axes
from resgym.texts import monomial_text


class Chart(NamedTuple):
    """One position of a tree.

    Attributes:
        number: counted from 1 (the root), level by level.
        parent: number of the chart it comes from; None at the root.
        axis: the agent's axis that led here; None at the root.
        depth: moves played so far.
        points: exponents of the monomials, in the order of the start.
        axes: the host's set; None where the branch ends.
        children: numbers of the charts after it, one per axis of ``axes``.
        ending: why the branch ends here; None if it continues.
        others: names of other hosts and their sets here; see `ResolutionTree.compare`.
    """

    number: int
    parent: int | None
    axis: int | None
    depth: int
    points: Position
    axes: Axes | None = None
    children: tuple[int, ...] = ()
    ending: Ending | None = None
    others: tuple[tuple[str, Axes], ...] = ()

    @property
    def is_cut(self) -> bool:
        """Whether the branch was cut."""
        return self.ending in ("depth", "size", "overflow")


class ChartTree:
    """A tree of charts in the order of their numbers, with the names of its axes."""

    def __init__(self, charts: Sequence[Chart], variables: Sequence[str], title: str = "") -> None:
        self.charts = tuple(charts)
        self.variables = tuple(variables)
        self.title = title

    def __repr__(self) -> str:
        cut = "" if self.complete else f", {self.num_cut} branches cut"
        return (
            f"{type(self).__name__}(depth={self.depth}, num_nodes={self.num_nodes}, "
            f"num_leaves={self.num_leaves}{cut})"
        )

    def __iter__(self) -> Iterator[Chart]:
        return iter(self.charts)

    def __getitem__(self, number: int) -> Chart:
        """Return the chart with a number, 1 to `num_nodes`."""
        if not 1 <= number <= len(self.charts):
            raise IndexError(f"chart must be between 1 and {len(self.charts)}, got {number}")
        return self.charts[number - 1]

    @property
    def root(self) -> Chart:
        """The root."""
        return self.charts[0]

    @property
    def depth(self) -> int:
        """Moves on the longest branch (up to the cut, if it was cut)."""
        return self.charts[-1].depth

    @property
    def num_nodes(self) -> int:
        """Number of charts, including the root."""
        return len(self.charts)

    @property
    def num_leaves(self) -> int:
        """Number of charts where a branch ends, including cut ones."""
        return sum(chart.ending is not None for chart in self.charts)

    @property
    def num_cut(self) -> int:
        """Number of cut branches."""
        return sum(chart.is_cut for chart in self.charts)

    @property
    def complete(self) -> bool:
        """Whether no branch was cut."""
        return not self.num_cut

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: totals, and every chart with exponents and monomials."""
        return dict(json.loads(self.to_json()))

    def _chart_dict(self, chart: Chart) -> dict[str, Any]:
        monomials = [monomial_text(point, self.variables) for point in chart.points]
        found = {"chart": chart.number, **chart._asdict(), "monomials": monomials}
        del found["number"], found["others"]
        if chart.others:
            found["others"] = dict(chart.others)
        if isinstance(chart.points, WeightedPosition):
            found |= vars(chart.points)
        return found

    def to_json(self, indent: int | None = None) -> str:
        """Return `to_dict` as JSON text."""
        names = "title variables depth num_nodes num_leaves num_cut complete"
        found: dict[str, Any] = {name: getattr(self, name) for name in names.split()}
        found["charts"] = [*map(self._chart_dict, self.charts)]
        return json.dumps(found, indent=indent)
