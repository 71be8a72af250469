"""Certificates: write what a search has proved, and read what a file proves.

The claims are those of `resgym.certificate_check`; docs/certificates.md describes the format.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from resgym.certificate_check import CLAIM, START, Proof, check, form
from resgym.files import StrPath, opened
from resgym.game.exact import Position, moved, prune
from resgym.game.spec import Axes, action_axes
from resgym.polynomials.parse import parse
from resgym.solver.search import GOALS, Limits, Points, Search
from resgym.solver.solution import Solution, best_set, by_position, grown_tree
from resgym.texts import Data

Host = Callable[[Position], Axes]
Aim = tuple[Position, int]
# As `certificate_check` has them alone.
MOST_BYTES, LONGEST_LINE = 2**27, 2**19
Needs = tuple[Data, list[Aim]]


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
    least, part = writer.best(start)
    writer.write_least(part, least)
    if writer.table(start)[1] < search.kernels.NO_TREE:
        host = writer.host
    if host is not None:
        writer.write_most(start, host)
    most = writer.proof.bounds(start)[1]
    first = {"start": points, "objective": search.objective, "least": least}
    first |= {} if most == math.inf else {"most": most}
    return "".join([_line(START, first), *writer.lines])


def read_certificate(certificate: StrPath) -> Solution:
    """Check a certificate, and return what it proves, with the tree of its host.

    Raises:
        ValueError: the file proves nothing, or something else than its first line, or it cannot be
            read, see `resgym.files.opened`.
    """
    limits = Limits()
    with opened(certificate, "certificate", MOST_BYTES) as file:
        try:
            # A line that is too long is read in parts; the first part is refused.
            proof = check(iter(partial(file.readline, LONGEST_LINE), ""))
        except RecursionError:
            raise ValueError("a number of the certificate is too large") from None
    objective, least, most = proof.says
    position, proved = parse(proof.start), least == most

    def best(points: Position) -> Axes:
        return best_set(prune(points), GOALS[objective], lambda after: proof.bounds(form(after)))

    title = f"certified tree, {objective} {most}: {position.pretty()}"
    upper = None if most == math.inf else most
    return Solution(
        upper if proved else None,
        least,
        upper,
        proved,
        objective,
        limits.seconds,
        len(proof.lows | proof.highs),
        None if proved else "end of the certificate",
        None if upper is None else partial(grown_tree, position, by_position(best), title),
    )


def _line(pattern: str, data: Data) -> str:
    line = json.dumps(data, separators=(",", ":"))
    if not re.fullmatch(pattern, line):
        raise ValueError("a certificate has at most 300 points with coordinates below 10^100")
    return line + "\n"


def _answers(here: Position, axes: Axes) -> list[Position]:
    return [form(moved(here, axes, axis)) for axis in axes]


class _Writer:
    """Claims, each proved by the checker from those before it. Positions are those of `form`."""

    def __init__(self, search: Search) -> None:
        self.goal, self.lines = search.goal, list[str]()
        self.proof, self.plan = Proof([[0]], search.objective), dict[Position, tuple[int, Needs]]()
        self.table = cache(lambda here: search.known(here or ((0,),)))

    def _write(self, **claim: Any) -> None:
        proved = self.proof.add(**claim)
        assert proved, claim
        self.lines.append(_line(CLAIM, claim))

    def parts(self, here: Position) -> list[Position]:
        """Return the projections to three or more axes, fewest axes first, and the position."""
        self.proof.bounds(here)
        return [each for each in self.proof.parts[here][1] if len(each and each[0]) > 2]

    def best(self, here: Position) -> tuple[int, Position]:
        """Return the best lower bound of a position, and a projection that has it, or itself."""

        def low(part: Position) -> int:
            return max(self.proof.bounds(part)[0], self.table(part)[0])

        best = max(self.parts(here) or [here], key=low)
        return low(best), best

    def write_least(self, start: Position, least: int) -> None:
        """Write claims: positions, and what their values are at least, as the table proves.

        Those wanted are planned first, the largest bounds before smaller ones, so that nearly all
        positions are written only once.
        """
        needs = self._sums if self.goal.by_sum else self._replies
        wanted, plan = defaultdict(list, {least: [start]}), self.plan
        todo: list[tuple[Position, int, Any]] = [(start, least, None)]
        while wanted:
            least = max(wanted)
            for here in wanted.pop(least):
                if here not in plan and self.proof.bounds(here)[0] < least:
                    plan[here] = least, needs(here, least)
                    for each, bound in plan[here][1][1]:
                        wanted[bound].append(each)
        while todo:
            here, least, claim = todo.pop()
            if self.proof.bounds(here)[0] >= least:
                continue
            if claim is not None:
                self._write(points=here, least=least, **claim)
                continue
            if plan.get(here, (0,))[0] >= least:
                least, (claim, aims) = plan.pop(here)
            else:  # within its own proof
                claim, aims = needs(here, least)
            todo += [(here, least, claim), *((*aim, None) for aim in aims)]

    def _replies(self, here: Position, least: int) -> Needs:
        """Return the agent's replies, and the claims that they need."""
        replies, aims = [], []
        for axes in action_axes(len(here[0])):
            ranks: list[Any] = []
            for axis, answer in zip(axes, _answers(here, axes), strict=True):
                low = self.proof.bounds(answer)[0]
                if answer == here or low >= least - 1:
                    ranks.append((0, 0, 0, axis, []))
                    continue
                for each in self.parts(answer):
                    if self.table(each)[0] >= least - 1:
                        aim = each, least - 1
                        new = each not in self.plan and aim not in aims
                        ranks.append((1 + new, least - low, len(each[0]) * len(each), axis, [aim]))
                        break
            *_, axis, needed = min(ranks)
            replies.append(axis)
            aims += needed
        return {"replies": replies}, aims

    def _sums(self, here: Position, least: int) -> Needs:
        """Return no replies, and the claims that the sums over all answers need."""
        aims = list[Aim]()
        for axes in action_axes(len(here[0])):
            answers = _answers(here, axes)
            lows = [self.proof.bounds(answer)[0] for answer in answers]
            missing = least - self.goal.move - sum(lows)
            for answer, low in zip(answers, lows, strict=True):
                best, part = self.best(answer)
                more = min(missing, best - low)
                if more > 0 and here not in answers:
                    aims.append((part, low + more))
                    missing -= more
        return {}, aims

    def host(self, here: Position) -> Axes:
        """Return a set after which the upper bound in the table is kept."""
        return best_set(here, self.goal, lambda after: self.table(form(after)))

    def write_most(self, start: Position, host: Host) -> None:
        """Write claims that a host's values are at most what they are."""
        todo = [start]
        while todo:
            here = todo.pop()
            if self.proof.bounds(here)[1] < math.inf:
                continue
            axes = host(here)
            answers = _answers(here, axes)
            most = self.goal.total(self.proof.bounds(answer)[1] for answer in answers)
            if most < math.inf:
                self._write(points=here, most=most, set=[*axes])
            else:
                todo += [here, *answers]
