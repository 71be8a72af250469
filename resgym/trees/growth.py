"""Resolution trees: all games of a host from one position, chart by chart, and how they grow."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any, Literal, NamedTuple

from resgym.game.exact import (
    PLAIN_HOSTS,
    Ending,
    OrderedRule,
    Position,
    WeightedPosition,
    ordered_rule,
)
from resgym.game.spec import Axes, GameSpec, check_integer, hints_keywords
from resgym.lazy import Lazy
from resgym.polynomials.monomials import Exponents
from resgym.polynomials.parse import parse
from resgym.texts import Data, Names, monomial_text
from resgym.trust import packaged

Stop = Literal["smooth", "crossings"]
Centres = Literal["all", "equimultiple"]

BATCH_ROWS = 1024
"""Number of charts that the host is asked about at once."""


def rule_of_charts(
    position: Exponents,
    spec: GameSpec,
    weights: Sequence[int] | None,
    stop: Stop | None,
    centres: Centres,
) -> OrderedRule:
    """Return the rule of a game with these options; see `resolution_tree`."""
    rule = ordered_rule(spec, weights)
    if stop is None and centres == "all":
        return rule
    return packaged("resgym.geometry.smooth:chart_rule")(position, rule, stop, centres)


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


Charts = Sequence[Chart]
Sets = Sequence[Axes]
Choose = Callable[[Charts], Sets]
"""The host's sets for the open charts of a level."""

Respond = Callable[[Charts, Sets], Sequence[int]]
"""The agent's axes for the open charts of a level and the host's sets."""


class ResolutionTree:
    """A tree of charts in the order of their numbers, with the names of its axes.

    Its toric geometry and its files are methods; notebooks show it folded.

    Attributes:
        start: what it is the tree of, as it was given.
    """

    spec = GameSpec()
    rule = OrderedRule(spec)

    divisors = Lazy("resgym.geometry.fan:tree_divisors")
    fan = Lazy("resgym.geometry.fan:tree_fan")
    log_canonical_threshold = Lazy("resgym.geometry.fan:log_canonical_threshold")
    invariants = Lazy("resgym.geometry.invariants:tree_invariants")
    surface_graph = Lazy("resgym.geometry.invariants:tree_surface_graph")
    to_form = Lazy("resgym.geometry.programs:tree_to_form")
    to_script = Lazy("resgym.geometry.programs:tree_to_script")

    to_text = Lazy("resgym.pictures.trees:tree_to_text")
    to_dot = Lazy("resgym.pictures.trees:tree_to_dot")
    to_svg = Lazy("resgym.pictures.trees:tree_to_svg")
    to_html = Lazy("resgym.pictures.trees:tree_to_html")
    to_latex = Lazy("resgym.pictures.trees:tree_to_latex")
    _repr_html_ = Lazy("resgym.pictures.trees:tree_in_notebook")

    def __init__(self, charts: Sequence[Chart], variables: Names, title: str = "") -> None:
        self.charts = tuple(charts)
        self.variables = tuple(variables)
        self.title = title
        self.start = Exponents(self.root.points, variables)

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
        return sum(chart.ending is not None for chart in self)

    @property
    def num_cut(self) -> int:
        """Number of cut branches."""
        return sum(chart.is_cut for chart in self)

    @property
    def complete(self) -> bool:
        """Whether no branch was cut."""
        return not self.num_cut

    def to_dict(self) -> Data:
        """Return plain data: totals, and every chart with exponents and monomials."""
        return dict(json.loads(self.to_json()))

    def _chart_dict(self, chart: Chart) -> Data:
        found = {
            "chart": chart.number,
            **chart._asdict(),
            "monomials": [monomial_text(point, self.variables) for point in chart.points],
        }
        del found["number"], found["others"]
        if chart.others:
            found["others"] = dict(chart.others)
        if isinstance(chart.points, WeightedPosition):
            found |= vars(chart.points)
        return found

    def to_json(self, indent: int | None = None) -> str:
        """Return `to_dict` as JSON text."""
        names = "title variables depth num_nodes num_leaves num_cut complete"
        found = {name: getattr(self, name) for name in names.split()}
        found["charts"] = [*map(self._chart_dict, self.charts)]
        return json.dumps(found, indent=indent)

    def compare(self, *hosts: Any) -> ResolutionTree:
        """Return the same tree with marks where other hosts, as in `resolution_tree`, differ."""
        charts = list(self)
        for host in hosts:
            name, choose = _choice(host, self.start, self.spec, 0)
            for begin in range(0, len(charts), BATCH_ROWS):
                batch = [chart for chart in charts[begin : begin + BATCH_ROWS] if chart.axes]
                for chart, axes in zip(batch, choose(batch) if batch else (), strict=True):
                    others = (*chart.others, (name, self.rule.centre(chart.points, axes)))
                    charts[chart.number - 1] = chart._replace(others=others)
        tree = copy(self)
        tree.charts = tuple(charts)
        return tree


@hints_keywords
def resolution_tree(
    points: Any,
    host: Any = "zeillinger",
    *,
    max_depth: int = 100,
    max_nodes: int = 100_000,
    stop: Stop | None = None,
    centres: Centres = "all",
    reposition: bool = False,
    seed: int = 0,
    rule: str = "basic",
    unit: int = 1,
    weights: Sequence[int] | None = None,
) -> ResolutionTree:
    """Grow the tree of all answers of the agent to a host, from one position.

    Args:
        points: anything that `resgym.parse` reads.
        host: a name, a `Player`, a function or a saved model.
        max_depth: branches are cut after this many moves.
        max_nodes: open branches are cut when the tree has this many charts; the last move can add
            up to D - 1 more.
        stop: also end branches where the strict transform is ``smooth`` at all points over the
            origin; or, with ``crossings``, where it also has normal crossings with the exceptional
            divisors there. Then coordinate hyperplanes in it count as divisors.
        centres: ``all``, or ``equimultiple``: those along which the strict transform has the
            multiplicity of the chart's origin. A host's other sets are replaced by the smallest
            such set that contains them.
        reposition: subtract the least exponent of every axis after each move.
        seed: random numbers of hosts that draw.
        rule: which rule is played; see docs/game.md. With ``thom`` the last point is the
            distinguished one, and only axes that the agent may choose lead to charts.
        unit: with ``polyhedra``, exponents are multiples of 1/unit.
        weights: with ``thom``, the weights of the axes; 1 by default.

    Raises:
        ValueError, TypeError: an argument is out of range or of a wrong type.
    """
    position = parse(points)
    check_integer("max_depth", max_depth, 0)
    check_integer("max_nodes", max_nodes, 1)
    check_integer("seed", seed, 0, 2**62)
    spec = GameSpec(position.dimension, reposition=reposition, rule=rule, unit=unit)
    name, choose = _choice(host, position, spec, seed)
    return grow_tree(
        position,
        choose,
        rule_of_charts(position, spec, weights, stop, centres),
        max_depth=max_depth,
        max_nodes=max_nodes,
        title=f"host {name}: {position.pretty()}",
    )


def _choice(host: Any, position: Exponents, spec: GameSpec, seed: int) -> tuple[str, Choose]:
    """Return a host's name for titles, and a function that chooses its sets in charts.

    A host that draws is sampled: the random numbers of a chart depend on ``seed``, its number and
    its depth alone.
    """
    plain = PLAIN_HOSTS.get(host) if isinstance(host, str) and spec.rule == "basic" else None
    if plain:
        return host, lambda charts: [plain(chart.points) for chart in charts]
    # Here, because they need torch.
    import torch

    from resgym.game.rng import RowRandom, Stream
    from resgym.players.asking import Seat
    from resgym.players.registry import own_attribute

    seat = Seat(host, "host", position, spec)
    sample = f" (one sample, seed {seed})" if own_attribute(seat.player, "draws") else ""

    def choose(charts: Charts) -> Sets:
        numbers = torch.tensor([chart.number for chart in charts])
        depths = torch.tensor([chart.depth for chart in charts])
        rng = RowRandom.for_episode(torch.full_like(numbers, seed), numbers)
        return seat.host_sets([chart.points for chart in charts], rng.at(depths, Stream.HOST))

    return seat.name + sample, choose


def grow_tree(
    points: Exponents,
    choose: Choose,
    rule: OrderedRule,
    *,
    max_nodes: int,
    max_depth: int | None = None,
    respond: Respond | None = None,
    title: str,
) -> ResolutionTree:
    """Grow a tree level by level; the host is asked about many charts at once.

    ``choose`` is the host. If ``respond`` is given, only this agent's axes are followed. The limits
    are those of `resolution_tree`; without ``max_depth`` no branch is too deep.
    """

    def ended(chart: Chart) -> Chart:
        """Return a chart with its ending."""
        return chart._replace(
            ending=rule.ending(chart.points) or ("depth" if chart.depth == max_depth else None)
        )

    charts = [ended(Chart(1, None, None, 0, rule.start(points)))]
    first = 0
    while batch := charts[first : first + BATCH_ROWS]:
        first += len(batch)
        batch = [chart for chart in batch if chart.ending is None]
        # When the room is spent the host is no longer asked, and the charts are closed.
        room = batch and len(charts) < max_nodes
        wanted = choose(batch) if room else [()] * len(batch)
        sets = [rule.centre(c.points, axes) for c, axes in zip(batch, wanted, strict=True)]
        axes = [(axis,) for axis in respond(batch, sets)] if respond and room else sets
        for chart, chosen, followed in zip(batch, sets, axes, strict=True):
            number, new = chart.number, []
            if len(charts) >= max_nodes:
                charts[number - 1] = chart._replace(ending="size")
                continue
            for child, axis in enumerate(rule.answers(chart.points, followed), len(charts) + 1):
                position = rule.after(chart.points, chosen, axis)
                if position is None:
                    # If one answer cannot be played exactly, all are cut.
                    charts[number - 1] = chart._replace(ending="overflow")
                    break
                new.append(ended(Chart(child, number, axis, chart.depth + 1, position)))
            else:
                children = tuple(child.number for child in new)
                charts[number - 1] = chart._replace(axes=chosen, children=children)
                charts += new
    tree = ResolutionTree(charts, points.variables, title)
    tree.rule, tree.spec, tree.start = rule, rule.spec, points
    return tree
