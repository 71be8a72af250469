"""Certificates: write what a search has proved, and read what a file proves.

The claims are those of `resgym.certificate_check`; docs/certificates.md describes the format.
"""

from __future__ import annotations

import json
import math
import os
import re
import time
from collections import defaultdict
from collections.abc import Callable, Container, Sequence
from functools import partial
from itertools import chain, combinations, islice, permutations
from operator import itemgetter
from typing import Any

from resgym.certificate_check import CLAIM, START, Proof, check, form
from resgym.game.actions import action_axes
from resgym.game.plain import Position, moved, prune
from resgym.polynomials.parse import as_position
from resgym.solver.search import GOALS, Points, Search
from resgym.solver.solution import Solution, grown_tree
from resgym.trees.data import Chart

Axes = tuple[int, ...]
Host = Callable[[Position], Axes]
Aim = tuple[Position, int]
Needs = tuple[dict[str, Any], list[Aim]]

ORDERS = 720
"""Orders of axes in which a position is looked for in the table if one does not suffice."""

LONGEST = 2_000_000
"""Characters of a line, at most."""


def certificate(points: Points, search: Search, host: Host | None = None) -> str:
    """Return a certificate of the proved bounds of a position, in lines of JSON.

    Args:
        points: the position.
        search: the table with the bounds.
        host: wins every game, for a bound from above where the table has none; or None.

    Raises:
        ValueError: a line would be longer than the checker allows.
    """
    writer, start = _Writer(search), form(points)
    for each in writer.parts(start):
        writer.table(each, ORDERS)
    least, aims = writer.best(start)
    writer.write_least(aims)
    if writer.table(start)[1] < search.kernels.NO_TREE:
        host = writer.host
    if host is not None:
        writer.write_most(start, host)
    most = writer.proof.bounds(start)[1]
    first = {"start": points, "objective": search.objective, "least": least}
    first |= {} if most == math.inf else {"most": most}
    return "".join([_line(START, first), *writer.lines])


def read_certificate(certificate: str | os.PathLike[str]) -> Solution:
    """Check a certificate, and return what it proves, with the tree of its host.

    Raises:
        ValueError: the file proves nothing, or something else than its first line.
        OSError: it cannot be read.
    """
    begun = time.perf_counter()
    with open(certificate, encoding="ascii") as file:
        try:
            proof = check(iter(lambda: file.readline(LONGEST), ""))
        except RecursionError:
            raise ValueError("a number of the certificate is too large") from None
    objective, least, most = proof.says
    position = as_position(proof.start)

    def choose(charts: Sequence[Chart]) -> list[Axes]:
        return [best(prune(chart.points)) for chart in charts]

    def best(points: Sequence[Axes]) -> Axes:
        def cost(axes: Axes) -> Any:
            after = (form(moved(points, axes, axis)) for axis in axes)
            return GOALS[objective].total(proof.bounds(each)[1] for each in after)

        return min(action_axes(len(points[0])), key=cost)

    title = f"certified tree, {objective} {most}: {position.pretty()}"
    grow = None if most == math.inf else partial(grown_tree, position, choose, title)
    highest = None if most == math.inf else most
    cost = time.perf_counter() - begun, len(proof.lows | proof.highs)
    value, stopped = (highest, None) if least == most else (None, "end of the certificate")
    return Solution(value, least, highest, least == most, objective, *cost, stopped, grow)


def _line(pattern: str, data: dict[str, Any]) -> str:
    line = json.dumps(data, separators=(",", ":"))
    if not re.fullmatch(pattern, line):
        raise ValueError("a certificate has at most 300 points with coordinates below 10^100")
    return line + "\n"


class _Writer:
    """Claims, each proved by the checker from those before it. Positions are those of `form`."""

    def __init__(self, search: Search) -> None:
        self.search, self.goal, self.lines = search, search.goal, list[str]()
        self.proof = Proof([[0]], search.objective)
        self._table: dict[Position, tuple[Any, Any]] = {}
        self._parts: dict[Position, list[Position]] = {}

    def _write(self, **claim: Any) -> None:
        proved = self.proof.add(**claim)
        assert proved, claim
        self.lines.append(_line(CLAIM, claim))

    def table(self, here: Position, orders: int = 1) -> tuple[Any, Any]:
        """Return the bounds in the table, for this many orders of the axes.

        The table may hold a position twice, in two orders of axes.
        """
        if here and (orders > 1 or here not in self._table):
            missing = [[0] * len(here)] * (self.search.table.dimension - len(here[0]))
            found = []
            for order in islice(permutations(zip(*here, strict=True)), orders):
                number = self.search.numbers([*zip(*order, *missing, strict=True)])[0]
                found.append(self.search.bounds(number))
            self._table[here] = max(low for low, _ in found), min(high for _, high in found)
        return self._table.get(here, (self.goal.finished, self.goal.finished))

    def parts(self, here: Position) -> list[Position]:
        """Return the projections to three or more axes, fewest axes first, and the position."""
        if here not in self._parts:
            axes = [*zip(*here, strict=True)]
            few = (each for n in range(3, len(axes) + 1) for each in combinations(axes, n))
            self._parts[here] = [*filter(None, (form(zip(*each, strict=True)) for each in few))]
        return self._parts[here]

    def best(self, here: Position) -> tuple[int, list[Aim]]:
        """Return the best lower bound of a position, and the claims that it needs."""
        least = self.proof.bounds(here)[0]
        best = max(
            ((self.table(each)[0], each) for each in self.parts(here)),
            default=(0, here),
            key=itemgetter(0),
        )
        return max(least, best[0]), [best[::-1]] * (best[0] > least)

    def answers(self, here: Position, axes: Axes, orders: int) -> list[Position]:
        """Return the positions after a set, looked up in many orders of axes if these are asked."""
        answers = [form(moved(here, axes, axis)) for axis in axes]
        for each in chain(*map(self.parts, answers)) if orders > 1 else ():
            self.table(each, orders)
        return answers

    def write_least(self, aims: list[Aim]) -> None:
        """Write claims: positions, and what their values are at least, as the table proves.

        Those wanted are planned first, the largest bounds before smaller ones, so that nearly all
        positions are written only once.
        """
        needs = self._sums if self.goal.by_sum else self._replies
        wanted, plan = defaultdict(list), dict[Position, tuple[int, Any]]()
        for here, least in aims:
            wanted[least].append(here)
        while wanted:
            least = max(wanted)
            for here in wanted.pop(least):
                if here not in plan:
                    plan[here] = least, needs(here, least, plan)
                    for each, bound in plan[here][1][1]:
                        wanted[bound].append(each)
        begun = dict[Position, int]()
        todo: list[tuple[Position, int, Any]] = [(*aim, None) for aim in aims]
        while todo:
            here, least, claim = todo.pop()
            if claim is not None and begun.get(here) == least:
                del begun[here]
            if self.proof.bounds(here)[0] >= least:
                continue
            if claim is not None:
                self._write(points=here, least=least, **claim)
                continue
            if here not in begun and here in plan and plan[here][0] >= least:
                least, (claim, aims) = plan[here]
                begun[here] = least
            else:
                claim, aims = needs(here, least, plan)
            todo += [(here, least, claim), *((*aim, None) for aim in aims)]

    def _replies(
        self, here: Position, least: int, plan: Container[Position], orders: int = 1
    ) -> Needs:
        """Return the agent's replies, and the claims that they need."""
        replies, aims = [], list[Aim]()
        for axes in action_axes(len(here[0])):
            ranks: list[Any] = []
            for axis, answer in zip(axes, self.answers(here, axes, orders), strict=True):
                low = self.proof.bounds(answer)[0]
                if answer == here or low >= least - 1:
                    ranks.append((0, 0, 0, axis, []))
                    continue
                for each in self.parts(answer):
                    if self.table(each)[0] >= least - 1:
                        aim = each, least - 1
                        new = each not in plan and aim not in aims
                        ranks.append((1 + new, least - low, len(each[0]) * len(each), axis, [aim]))
                        break
            if not ranks:
                return self._replies(here, least, plan, ORDERS)
            *_, axis, needed = min(ranks)
            replies.append(axis)
            aims += needed
        return {"replies": replies}, aims

    def _sums(
        self, here: Position, least: int, plan: Container[Position], orders: int = 1
    ) -> Needs:
        """Return no replies, and the claims that the sums over all answers need."""
        aims = list[Aim]()
        for axes in action_axes(len(here[0])):
            answers = self.answers(here, axes, orders)
            lows = [self.proof.bounds(answer)[0] for answer in answers]
            missing = least - self.goal.move - sum(lows)
            if here in answers:
                continue
            for answer, low in zip(answers, lows, strict=True):
                best, source = self.best(answer)
                more = min(missing, best - low)
                if more > 0:
                    aims += [(each, low + more) for each, _ in source]
                    missing -= more
            if missing > 0:
                return self._sums(here, least, plan, ORDERS)
        return {}, aims

    def host(self, here: Position, orders: int = 1) -> Axes:
        """Return a set after which the upper bound in the table is kept."""

        def cost(axes: Axes) -> Any:
            return self.goal.total(self.table(each)[1] for each in self.answers(here, axes, orders))

        best = min(action_axes(len(here[0])), key=cost)
        if cost(best) > self.table(here)[1] and orders == 1:
            return self.host(here, ORDERS)
        return best

    def write_most(self, start: Position, host: Host) -> None:
        """Write claims that a host's values are at most what they are."""
        todo: list[tuple[Position, Axes]] = [(start, ())]
        while todo:
            here, axes = todo.pop()
            if self.proof.bounds(here)[1] < math.inf:
                continue
            chosen = axes or host(here)
            answers = [form(moved(here, chosen, axis)) for axis in chosen]
            if axes:
                most = self.goal.total(self.proof.bounds(answer)[1] for answer in answers)
                self._write(points=here, most=most, set=[*axes])
            else:
                todo += [(here, chosen), *((answer, ()) for answer in answers)]
