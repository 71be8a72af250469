"""Check a certificate of optimal play: ``python certificate_check.py FILE``.

Game: a position is a finite set in N^d. The host names two or more axes, the agent one of them, i;
x_i of each point becomes the sum of its coordinates over the set. It is over once one point is <=
all others. A tree has the host's set and all answers at each position, and ends in finished ones.
A value is the least depth (moves on the longest branch), or the fewest nodes or leaves, of trees.
Same value (`form`): a point >= another one stays so; a shift, a common factor, the order of axes
change no comparison; an axis on which all points agree can go: its sets never help, see next.
Projections (`bounds`): points on some of their axes have at most the value. From any tree leave out
all answers but one on a missing axis, where a set has such: a tree of the projection remains.
Two axes (`steps`): there is one set. The game lasts while the Newton polygon has compact edges:
weights (a, b) > 0 least at two points. Answers make (a - b, b) or (a, b - a) of all, if > 0.
Claims (`add`) follow from lines above. ``most``: after the set the bounds of all answers suffice.
``least``: to each set the reply's does (or all), or it is the root again: no least tree has that.
"""

import json
import os
import re
import sys
from itertools import chain, combinations, groupby, islice, permutations, product
from math import gcd, inf

N, AXES = "(0|[1-9][0-9]{0,99})", r"\[[0-9](,[0-9])*\]"
POINTS = rf"\[\[{N}(,{N}){{1,9}}\](,\[{N}(,{N}){{1,9}}\]){{0,299}}\]"
START = rf'{{"start":{POINTS},"objective":"(depth|nodes|leaves)"(,"least":{N})?(,"most":{N})?}}'
CLAIM = rf'{{"points":{POINTS},("most":{N},"set":{AXES}|"least":{N}(,"replies":{AXES})?)}}'


def form(points):
    rows = sorted({*zip(*zip(*points, strict=True))})
    kept = [p for k, p in enumerate(rows) if not any(all(map(int.__le__, q, p)) for q in rows[:k])]
    axes = [[x - least for x in axis] for axis in zip(*kept) for least in [min(axis)]]
    scale = gcd(*chain(*axes)) or 1
    axes = sorted(([x // scale for x in axis] for axis in axes if any(axis)), key=sorted)
    tied = [islice(permutations(group), 720) for _, group in groupby(axes, key=sorted)]
    return min(tuple(sorted(zip(*chain(*order)))) for order in islice(product(*tied), 720))


class Proof:
    def __init__(self, start, objective, least=0, most=inf):
        self.start, self.says, self.lows, self.highs = start, (objective, least, most), {}, {}
        self.end, self.move, self.parts = int(objective != "depth"), int(objective != "leaves"), {}

    def steps(self, edges):
        m, n = min((a - 1) // b for a, b in edges), min((b - 1) // a for a, b in edges)
        edges = [(a - m * b, b - n * a) for a, b in edges]  # what all edges do at first
        two = {(a - b, b) for a, b in edges if a > b}, {(a, b - a) for a, b in edges if a < b}
        deep, many = zip((0, 0), *(self.steps(each) for each in two if each))
        return m + n + 1 + max(deep), m + n + 1 + sum(many)

    def bounds(self, here):
        if here not in self.parts:
            axes, moves = [*zip(*here)], int(here != ())
            forms = [form(zip(*f)) for n in range(2, len(axes) + 1) for f in combinations(axes, n)]
            for flat in (each for each in forms if len(each and each[0]) == 2):
                pairs = {(b - d, c - a, b * c - a * d) for (a, b), (c, d) in combinations(flat, 2)}
                edges = {(u, v) for u, v, w in pairs if all(u * x + v * y >= w for x, y in flat)}
                moves = max(moves, self.steps(edges)[self.end])
            self.parts[here] = self.end + moves * (self.move + self.end), forms
        low = max([self.parts[here][0], *(self.lows.get(f, 0) for f in self.parts[here][1])])
        return low, low if len(here and here[0]) < 3 else self.highs.get(here, inf)

    def add(self, points, most=inf, set=None, least=0, replies=None):
        here, d = form(points), len(points[0])
        sets = [[j for j in range(d) if m >> j & 1] for m in range(2**d) if m & (m - 1)]
        asked = [s for s in sets if set in (None, s)]
        answers = [[i] for i in replies] if replies else asked
        proved = here != () and 0 < len(asked) == len(answers)
        for s, few in zip(asked, answers):
            to = [form([(*p[:i], sum(p[k] for k in s), *p[i + 1 :]) for p in points]) for i in few]
            low, high = (self.move + (max, sum)[self.end](b) for b in zip(*map(self.bounds, to)))
            proved &= {*few} <= {*s} and (high <= most if set else low >= least or here in to)
        if proved:
            (self.highs if set else self.lows)[here] = most if set else least
        return proved


def check(lines, proof=None):
    for number, line in enumerate(lines, 1):
        good = number <= 10**6 and re.fullmatch(CLAIM if proof else START, line.rstrip("\n"))
        if good and proof is None:
            proof = Proof(**json.loads(line))
        elif not good or not proof.add(**json.loads(line)):
            raise ValueError(f"line {number} " + ("is not proved" if good else "has a fault"))
    low, high = proof.bounds(form(proof.start)) if proof else (-1, inf)
    if low < 0 or low < proof.says[1] or high > proof.says[2]:
        raise ValueError("the lines do not prove the first one")
    return proof


if __name__ == "__main__":
    try:
        if not os.path.isfile(name := "".join(sys.argv[1:])) or os.path.getsize(name) > 2**27:
            raise ValueError("expected a regular file of at most 128 MiB")
        with open(name, encoding="ascii") as file:
            says = check(iter(lambda: file.readline(2**19), "")).says
        print("proved: {} at least {}, at most {}".format(*says))
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        raise SystemExit(f"refused: {error}") from None
