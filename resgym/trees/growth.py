"""Grow resolution trees: all games of a host from one position.

A branch may also end, or a host have fewer centres, where the strict transform is smooth over the
origin. The exponents of the root and the rays of a chart decide that, for polynomials that are
nondegenerate on the compact faces of their Newton polyhedron. ``docs/resolution.md`` gives the
criterion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from itertools import chain
from typing import Any, Literal

from resgym.game.exact import (
    PLAIN_HOSTS,
    Ending,
    OrderedRule,
    Position,
    corner,
    ordered_rule,
    shifted,
)
from resgym.game.spec import (
    Axes,
    GameSpec,
    Point,
    RuleName,
    check_choice,
    check_integer,
    hints_keywords,
)
from resgym.polynomials.monomials import Exponents
from resgym.polynomials.parse import as_position
from resgym.texts import markup
from resgym.trees.data import Chart, ChartTree
from resgym.trees.fan import (
    Cone,
    compact_cells,
    degenerate_faces,
    divided,
    eliminate,
    in_chart,
    log_canonical_threshold,
    path_rays,
    subsets,
    tree_divisors,
    tree_fan,
)
from resgym.trees.invariants import Invariants, tree_invariants
from resgym.trees.pictures import (
    tree_part,
    tree_to_dot,
    tree_to_html,
    tree_to_latex,
    tree_to_svg,
    tree_to_text,
)
from resgym.trees.programs import tree_to_form, tree_to_script
from resgym.trees.surface import SurfaceGraph

Stop = Literal["smooth", "crossings"]
Centres = Literal["all", "equimultiple"]


class ChartPosition(tuple[Point, ...]):
    """The points of a chart, with the rays of its cone."""

    rays: Cone


class ChartRule(OrderedRule):
    """The basic rule, with charts that also end where geometry is content, or with fewer centres.

    Args:
        spec: the game.
        stop: ``smooth``, ``crossings`` (see `is_smooth`) or None.
        centres: ``all``, or ``equimultiple`` for those along which the strict transform has the
            same multiplicity as at the origin of the chart.
    """

    def __init__(self, spec: GameSpec, stop: Stop | None, centres: Centres) -> None:
        super().__init__(spec)
        self.stop, self.centres = stop, centres
        self.root: Sequence[Point] = ()

    def start(self, points: Iterable[Point]) -> Position:
        """See `OrderedRule`."""
        self.root = self._kept(points)
        return self._chart(self.root, path_rays(self.spec.dimension, ()))

    def _placed(self, after: Iterable[Point], points: Any, axes: Axes, axis: int) -> Position:
        return self._chart(after, divided(points.rays, axes, axis))

    def ending(self, points: Any) -> Ending | None:
        """See `OrderedRule`."""
        ended = super().ending(points)
        if ended or self.stop is None:
            return ended
        return self.stop if is_smooth(self.root, points.rays, self.stop == "crossings") else None

    def sets(self, points: Position) -> Iterator[Axes]:
        """See `OrderedRule`."""
        places = shifted(points, corner(points))
        order = min(map(sum, places))
        for axes in super().sets(points):
            along = min(sum(point[k] for k in axes) for point in places)
            if self.centres == "all" or along == order:
                yield axes

    def centre(self, points: Position, axes: Axes) -> Axes:
        """See `OrderedRule`."""
        return next(each for each in self.sets(points) if {*axes} <= {*each})

    def key(self, points: Any) -> Cone:
        """See `OrderedRule`; the order of the axes does not matter."""
        return tuple(sorted(points.rays))

    def _chart(self, points: Iterable[Point], rays: Cone) -> ChartPosition:
        position = ChartPosition(super().start(points))
        position.rays = rays
        return position


def chart_rule(
    spec: GameSpec, weights: Sequence[int] | None, stop: Stop | None, centres: Centres
) -> OrderedRule:
    """Return the rule of a tree; see `resgym.resolution_tree`."""
    check_choice("centres", centres, ["all", "equimultiple"])
    if stop is None and centres == "all":
        return ordered_rule(spec, weights)
    check_choice("stop", stop or "smooth", ["smooth", "crossings"])
    if spec.rule != "basic" or weights is not None:
        raise ValueError(f"stop and centres are for rule 'basic', got rule {spec.rule!r}")
    return ChartRule(spec, stop, centres)


def is_smooth(points: Sequence[Point], rays: Cone, crossings: bool = False) -> bool:
    """Return whether the strict transform is smooth at all points of a chart over the origin.

    Args:
        points: the minimal exponents of the root.
        rays: those of the chart.
        crossings: it must also have normal crossings with the exceptional divisors and the
            coordinate hyperplanes that divide the total transform.
    """
    places = [in_chart(point, rays) for point in points]
    lowest = corner(places)
    support = shifted(places, lowest)
    free = [j for j, ray in enumerate(rays) if not crossings or (sum(ray) == 1 and not lowest[j])]
    for axes in subsets(len(rays)):
        # Where x_j = 0 for these axes only: is it over the origin, and in the strict transform?
        over = all(map(any, zip(*(rays[j] for j in axes), strict=True)))
        if over and all(any(a[j] for j in axes) for a in support):
            linear = (
                [a for a in support if a[j] == sum(a[k] for k in axes) == 1]
                for j in axes
                if j in free
            )
            if _vanish_together([*filter(None, linear)]):
                return False
    return True


def _vanish_together(systems: Sequence[Sequence[Point]]) -> bool:
    """Whether Laurent polynomials with these exponents have a common zero, for generic ones.

    They have none if and only if the Newton polytopes of some of them have a sum whose dimension is
    below their number (Bernstein, Minkowski).
    """
    steps = [shifted(others, first) for first, *others in systems]
    return all(
        len(eliminate(chain(*(steps[k] for k in chosen)))[0]) >= len(chosen)
        for chosen in subsets(len(steps))
    )


BATCH_ROWS = 1024
"""Number of charts that the host is asked about at once."""

Charts = Sequence[Chart]
Sets = Sequence[Axes]
Choose = Callable[[Charts], Sets]
"""The host's sets for the open charts of a level."""

Respond = Callable[[Charts, Sets], Sequence[int]]
"""The agent's axes for the open charts of a level and the host's sets."""


class ResolutionTree(ChartTree):
    """A `ChartTree` with methods for its toric geometry and its files; notebooks show it folded."""

    spec = GameSpec()
    start = Exponents(())
    """What it is the tree of, as it was given."""

    divisors = tree_divisors
    fan = tree_fan
    invariants = tree_invariants
    log_canonical_threshold = log_canonical_threshold

    to_text = tree_to_text
    to_dot = tree_to_dot
    to_svg = tree_to_svg
    to_html = tree_to_html
    to_latex = tree_to_latex
    to_form = tree_to_form
    to_script = tree_to_script

    def _repr_html_(self) -> str:
        return f"<b>{markup(self.title)}</b>{tree_part(self, mark=f'{id(self)}-')}"

    def surface_graph(self, minimal: bool = True) -> SurfaceGraph:
        """Return the resolution graph of a surface, see `Invariants.surface_graph`."""
        found = self.invariants()
        if not isinstance(found, Invariants):
            raise ValueError("polynomial must be one to have a graph, got an ideal")
        return found.surface_graph(minimal)

    def compare(self, *hosts: Any) -> ResolutionTree:
        """Return the same tree with marks where other hosts, as in `resolution_tree`, differ."""
        charts = list(self)
        going = [index for index, chart in enumerate(charts) if chart.axes]
        position = Exponents(self.root.points, self.variables)
        for host in hosts:
            name, choose = _choice(host, position, self.spec, 0)
            for begin in range(0, len(going), BATCH_ROWS):
                batch = going[begin : begin + BATCH_ROWS]
                for index, axes in zip(batch, choose([charts[i] for i in batch]), strict=True):
                    others = (*charts[index].others, (name, axes))
                    charts[index] = charts[index]._replace(others=others)
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
    rule: RuleName = "basic",
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
            origin, or has normal ``crossings`` with the exceptional divisors there, too.
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
    position = as_position(points)
    check_integer("max_depth", max_depth, 0)
    check_integer("max_nodes", max_nodes, 1)
    check_integer("seed", seed, 0, 2**62)
    spec = GameSpec(position.dimension, reposition=reposition, rule=rule, unit=unit)
    if stop is not None:
        check_nondegenerate(position)
    name, choose = _choice(host, position, spec, seed)
    return grow_tree(
        position,
        choose,
        chart_rule(spec, weights, stop, centres),
        max_depth=max_depth,
        max_nodes=max_nodes,
        title=f"host {name}: {position.pretty()}",
    )


def full_tree(points: Exponents) -> ResolutionTree:
    """Return a tree without practical limits."""
    return resolution_tree(points, max_depth=10**4, max_nodes=10**6)


def check_nondegenerate(points: Exponents) -> None:
    """Raise ValueError if what is known of the coefficients shows that ``stop`` does not hold."""
    cells = compact_cells(full_tree(points))
    if bad := ["an ideal"] if points.ideal else degenerate_faces(cells, points):
        raise ValueError(f"stop is for nondegenerate polynomials, got {bad[0]}")


def _choice(host: Any, position: Exponents, spec: GameSpec, seed: int) -> tuple[str, Choose]:
    """Return the name of a host and its sets."""
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
    title: str = "",
) -> ResolutionTree:
    """Grow a tree level by level; the host is asked about many charts at once.

    ``choose`` is the host. If ``respond`` is given, only this agent's axes are followed. The limits
    are those of `resolution_tree`; without ``max_depth`` no branch is too deep.
    """

    def chart_of(
        number: int, parent: int | None, axis: int | None, depth: int, position: Position
    ) -> Chart:
        ending = rule.ending(position)
        if ending is None and max_depth is not None and depth >= max_depth:
            ending = "depth"
        return Chart(number, parent, axis, depth, position, ending=ending)

    charts = [chart_of(1, None, None, 0, rule.start(points))]
    first = 0
    while batch := charts[first : first + BATCH_ROWS]:
        first += len(batch)
        batch = [chart for chart in batch if chart.ending is None]
        # When the room is spent the host is no longer asked, and the charts are closed.
        room = batch and len(charts) < max_nodes
        wanted = list(choose(batch)) if room else [()] * len(batch)
        sets = [rule.centre(c.points, axes) for c, axes in zip(batch, wanted, strict=True)]
        axes: Sequence[Axes] = sets
        if respond is not None and room:
            axes = [(axis,) for axis in respond(batch, sets)]
        for chart, chosen, followed in zip(batch, sets, axes, strict=True):
            number, new = chart.number, list[Chart]()
            if len(charts) >= max_nodes:
                charts[number - 1] = chart._replace(ending="size")
                continue
            answers = rule.answers(chart.points, followed)
            for child, axis in enumerate(answers, len(charts) + 1):
                position = rule.after(chart.points, chosen, axis)
                if position is None:
                    # If one answer cannot be played exactly, all are cut.
                    charts[number - 1] = chart._replace(ending="overflow")
                    break
                new.append(chart_of(child, number, axis, chart.depth + 1, position))
            else:
                children = tuple(child.number for child in new)
                charts[number - 1] = chart._replace(axes=chosen, children=children)
                charts += new
    tree = ResolutionTree(charts, points.variables, title)
    tree.spec, tree.start = rule.spec, points
    return tree
