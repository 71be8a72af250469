"""Further questions of ``make oracle``: charts, typed coefficients, ideals, scripts."""

from __future__ import annotations

import json
import random
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import chain, combinations
from typing import Any, NamedTuple

import resgym
from resgym.game.exact import prune
from resgym.geometry.fan import chart_rays
from resgym.geometry.smooth import is_smooth
from resgym.polynomials.singularities import singularity_names
from resgym.texts import monomial_text

PRIME = 2147483647
"""Characteristic in which random coefficients are generic."""

TOGETHER = 10
"""Questions of one run of a program, which takes a while to start."""


class Question(NamedTuple):
    """What a program is asked.

    Attributes:
        title: what it is about.
        program: ``singular``, ``macaulay2``, ``sage`` or ``polymake``.
        script: its input.
        compare: maps what it prints to each thing that was compared, with both values if they
            differ.
    """

    title: str
    program: str
    script: str
    compare: Callable[[str], dict[str, str]]


def random_start(generator: random.Random, dimension: int, top: int) -> list[tuple[int, ...]]:
    """Return random exponents without a constant, of at least two minimal ones."""
    while True:
        points = {
            tuple(generator.randint(0, top) for _ in range(dimension))
            for _ in range(generator.randint(2, 5))
        }
        if all(map(any, points)) and len(prune(points)) > 1:
            return sorted(points)


def charts(number: int, generator: random.Random) -> Iterator[Question]:
    """Is the strict transform smooth over the origin, with normal crossings?"""
    names = [
        name for kind in ("simple", "exceptional", "bimodal") for name in singularity_names(kind)
    ]
    found: list[tuple[str, str, bool, bool]] = []
    hosts = ["zeillinger", "zeillinger_lex", "all_coord"]
    while len(found) < number:
        dimension = generator.choice([2, 3, 3, 4])
        some: Any = generator.choice(names)
        if len(found) % 2:
            some = random_start(generator, dimension, 5)
        tree = resgym.resolution_tree(some, generator.choice(hosts), max_depth=7, max_nodes=300)
        every = list(zip(tree, chart_rays(tree), strict=True))
        for chart, rays in generator.sample(every, min(3, len(every))):
            points = tree.root.points
            found.append(
                (
                    f"chart {chart.number} of {tree.title}",
                    chart_script(len(found), points, rays, generator),
                    is_smooth(points, rays),
                    is_smooth(points, rays, crossings=True),
                )
            )
    for at in range(0, number, TOGETHER):
        part = found[at : min(at + TOGETHER, number)]

        def compare(text: str, part: Any = part) -> dict[str, str]:
            answers = re.findall(r"^ANSWER (\d) (\d)$", text, re.MULTILINE)
            results: dict[str, str] = {}
            for (title, _, *ours), theirs in zip(part, answers, strict=False):
                for kind, own, other in zip(("smooth", "crossings"), ours, theirs, strict=True):
                    key = f"{kind}: {'yes' if own else 'no'} | {title}"
                    results[key] = "" if own == (other == "1") else f"{own}, Singular: {other}"
            return results

        scripts = ["int smooth; int crossings;", *(script for _, script, *_ in part)]
        yield Question("charts", "singular", "\n".join(scripts), compare)


def chart_script(number: int, points: Any, rays: Any, generator: random.Random) -> str:
    """Return Singular's input that prints whether the singular loci miss the fibre over 0."""
    size = range(len(rays))
    names = [f"x({i})" for i in size]
    places = [[sum(map(int.__mul__, ray, point)) for ray in rays] for point in points]
    lowest = [*map(min, zip(*places, strict=True))]
    terms = (
        f"{generator.randrange(1, PRIME)}*"
        + monomial_text(tuple(a - b for a, b in zip(place, lowest, strict=True)), names)
        for place in places
    )
    over = ",".join(monomial_text(column, names) for column in zip(*rays, strict=True))
    divisors = [i for i in size if sum(rays[i]) > 1 or lowest[i]]
    lines = [
        f"ring r{number} = {PRIME}, ({','.join(names)}), dp;",
        f"poly f = {' + '.join(terms)};",
    ]
    # Hyperplanes of the root belong to the strict transform.
    factor = [low * (sum(ray) == 1) for ray, low in zip(rays, lowest, strict=True)]
    lines += [f"poly g = f * {monomial_text(factor, names)};", f"ideal over = {over};"]
    lines += ["crossings = 1; smooth = reduce(1, std(over + ideal(g) + jacob(g))) == 0;"]
    for some in chain.from_iterable(combinations(divisors, n) for n in range(len(divisors) + 1)):
        parts = ["f", *(names[j] for j in some)]
        parts += [f"diff(f, {names[i]})" for i in size if i not in some]
        lines.append(
            f"if (reduce(1, std(over + ideal({','.join(parts)}))) != 0) {{ crossings = 0; }}"
        )
    return "\n".join([*lines, '"ANSWER " + string(smooth) + " " + string(crossings);'])


def typed(number: int, generator: random.Random) -> Iterator[Question]:
    """Is a polynomial with coefficients degenerate, and what is its Milnor number?"""
    made, counts, half = 0, Counter[str](), (number + 1) // 2
    while made < number:
        # Half of them are degenerate; what is drawn last makes up for chance.
        short = [verdict for verdict in ("no", "ye") if counts[verdict] < half]
        dimension, degenerate = 2 + made % 2, short[made // 2 % len(short)] == "no"
        names = "xyz"[:dimension]
        text = _text(random_start(generator, dimension, 4), names, generator)
        powers = [f"{name}^{generator.randint(2, 7)}" for name in names]
        if degenerate:
            one, other = (f"{n}^{generator.randint(1, 3)}" for n in generator.sample(names, 2))
            text = f"({one} {generator.choice('+-')} {generator.randint(1, 3)}*{other})^2"
            text += "".join(f" + {name}^{generator.randint(2, 9)}" for name in names[2:])
            text += f" + {generator.choice(names)}^{generator.randint(5, 9)}*{names[0]}"
        else:
            text += "".join(f" + {generator.randint(1, 9)}*{power}" for power in powers)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                start = resgym.parse(text)
                tree = resgym.resolution_tree(start, max_depth=1000)
            except ValueError:
                continue
        if start.dimension != dimension or not tree.complete:
            continue
        facts = resgym.examine(start)
        verdict = facts["nondegenerate"][:2]
        if verdict not in short:
            continue
        made, counts[verdict] = made + 1, counts[verdict] + 1
        script = "\n".join(
            [
                'LIB "sing.lib"; LIB "elim.lib";',
                f"ring r = 0, ({','.join(names)}), ds; poly f = {text};",
                '"MILNOR " + string(milnor(f));',
                f"ring q = 0, ({','.join(names)}), dp; int bad = 0;",
                *_face_lines(start, names),
                '"DEGENERATE " + string(bad);',
            ]
        )

        def compare(text: str, facts: Any = facts, tree: Any = tree) -> dict[str, str]:
            milnor = re.search(r"^MILNOR (-?\d+)", text, re.MULTILINE)
            bad = re.search(r"^DEGENERATE (\d)", text, re.MULTILINE)
            results: dict[str, str] = {}
            ours = facts["nondegenerate"] != "yes"
            if bad:
                key = f"typed, {'degenerate' if ours else 'nondegenerate'}"
                results[key] = "" if ours == (bad[1] == "1") else f"{ours}, Singular: {bad[1]}"
            if not milnor:
                return results
            isolated, number = facts["isolated"] == "yes", int(milnor[1])
            results["typed, isolated"] = (
                "" if isolated == (number >= 0) else f"{isolated}, Singular: {number}"
            )
            if not ours and isolated:
                same = facts["Milnor number"] == number == tree.invariants().milnor_number
                results["typed, Milnor number"] = (
                    "" if same else f"{facts['Milnor number']}, Singular: {number}"
                )
            if ours and isolated:
                try:
                    tree.invariants()
                    results["typed, bound"] = "no error"
                except ValueError as error:
                    least = re.search(r"Milnor number at least (\d+)", str(error))
                    holds = least is None or int(least[1]) <= number
                    results["typed, bound"] = "" if holds else f"{least}, Singular: {number}"
            return results

        yield Question(text, "singular", script, compare)


def _text(points: Any, names: str, generator: random.Random) -> str:
    return " + ".join(f"{generator.randint(1, 9)}*{monomial_text(p, names)}" for p in points)


def _face_lines(start: Any, names: str) -> Iterator[str]:
    """Lines that set ``bad`` where a face is degenerate; faces are found from many weights."""
    terms, axes = start.generators[0], range(len(names))
    generator, faces = random.Random(0), set[tuple[Any, ...]]()
    normals = [tuple(generator.randint(1, 60) for _ in axes) for _ in range(3000)]
    # Weights with small entries lie on the rays, too, where faces are large.
    normals += [tuple(weight) for weight in _small(len(names), 60 if len(names) == 2 else 15)]
    for weight in normals:
        values = {p: sum(map(int.__mul__, weight, p)) for p in terms}
        least = min(values.values())
        faces.add(tuple(sorted(p for p, value in values.items() if value == least)))
    logs = ",".join(f"{n}*diff(g, {n})" for n in names)
    yield f"poly g; ideal torus = {'*'.join(names)};"
    for face in sorted(faces):
        yield "g = " + " + ".join(f"({terms[p]})*{monomial_text(p, names)}" for p in face) + ";"
        yield f"if (reduce(1, std(sat(ideal(g, {logs}), torus)[1])) != 0) {{ bad = 1; }}"


def _small(dimension: int, top: int) -> Iterator[list[int]]:
    weights: list[list[int]] = [[]]
    for _ in range(dimension):
        weights = [[*weight, k] for weight in weights for k in range(1, top + 1)]
    yield from weights


def ideals(number: int, generator: random.Random) -> Iterator[Question]:
    """Thresholds and multiplier ideals of monomial ideals, also past 1, all in one run."""
    lines = ['needsPackage "MultiplierIdeals";']
    asked: list[tuple[str, Any, Any]] = []
    for index in range(number):
        dimension = 2 + index % 2
        names = "xyz"[:dimension]
        points = random_start(generator, dimension, 6 if dimension == 2 else 3)
        text = ", ".join(monomial_text(p, names) for p in points)
        start = resgym.parse(text, ",".join(names))
        found: Any = resgym.resolution_tree(start, max_depth=1000).invariants()
        some = generator.sample(found.jumping_numbers, min(2, len(found.jumping_numbers)))
        exponents = [*some, *(c - Fraction(1, 50) for c in some)]
        lines.append(f"R = QQ[{','.join(names)}]; I = monomialIdeal({text});")
        lines.append(f'print("LCT {len(asked)} " | toString logCanonicalThreshold I);')
        asked.append((text, None, found.log_canonical_threshold))
        for c in exponents:
            lines.append(f'print("IDEAL {len(asked)} " | toString multiplierIdeal(I, {c}));')
            ideal = {monomial_text(p, names) for p in found.multiplier_ideal(c)}
            asked.append((text, c, ideal))

    def compare(text: str) -> dict[str, str]:
        results: dict[str, str] = {}
        for at, answer in re.findall(r"^(?:LCT|IDEAL) (\d+) (.*)$", text, re.MULTILINE):
            title, c, ours = asked[int(at)]
            if c is None:
                kind, same = "thresholds of ideals", ours == Fraction(answer)
            else:
                kind = f"multiplier ideals {'past 1' if c >= 1 else 'below 1'}"
                # ideal(x^2, y), but ideal x for one generator
                inside = re.sub(r"^\w*[iI]deal\s*|[()\s]", "", answer)
                same = ours == {*inside.split(",")}
            key = f"{kind} | {title}, c = {c}"
            results[key] = "" if same else f"{ours}, Macaulay2: {answer}"
        return results

    yield Question("ideals", "macaulay2", "\n".join(lines), compare)


# What is added to the scripts: they print the number of the tree, then what is compared.
_PRINT = {
    "macaulay2": """
print("TREE <number> ORDERS " | toString apply(fanRays,
  v -> {min apply(exponents germ, p -> sum apply(v, p, times)), sum v}))
print("TREE <number> CHARTS " | toString apply(transforms, t -> exponents t#1))
""",
    "sage": """
print("TREE <number> ORDERS", [[min(sum(a * b for a, b in zip(v, p)) for p in germ.exponents()),
  sum(v)] for v in rays])
""",
    "polymake": """
my $powers = $germ->monomials_as_matrix;
my @found = map { my $v = new Vector<Int>($_); my ($sum, $least) = (0);
  $sum += $_ for @$v;
  for my $p (@$powers) { my $n = $v * $p; $least = $n if !defined $least || $n < $least; }
  "[$least, $sum]" } @$rays;
print "TREE <number> ORDERS [", join(", ", @found), "]\n";
""",
}
_PRINT_FAN = {
    "macaulay2": """
print("TREE <number> FAN " | toString {isWellDefined toric, isSmooth toric, #(max toric)})
""",
    "sage": """
print("TREE <number> FAN", [fan.is_smooth(), fan.is_simplicial(), len(fan.generating_cones())])
""",
    "polymake": """
print "TREE <number> FAN [", join(", ", $fan->SMOOTH_FAN, $fan->SIMPLICIAL, $fan->N_MAXIMAL_CONES),
  "]\n";
""",
}


def scripts(trees: list[Any], endings: dict[str, str]) -> Iterator[Question]:
    """The scripts of all trees in one run of each program, with what they show."""
    for program, ending in endings.items():
        text, right = "", dict[str, Any]()
        for number, tree in enumerate(trees):
            fan, points = tree.fan(), tree.root.points
            orders = [[min(sum(map(int.__mul__, v, p)) for p in points), sum(v)] for v in fan.rays]
            right[f"{number} ORDERS"] = orders
            part = tree.to_script(ending) + _PRINT[program]
            if fan.glues:
                right[f"{number} FAN"] = [1, 1, len(fan.cones)]
                part += _PRINT_FAN[program]
            if program == "macaulay2":
                right[f"{number} CHARTS"] = [sorted(map(list, chart.points)) for chart in tree]
            part = part.replace("<number>", str(number))
            text += f"{{\n{part}}}\n" if program == "polymake" else part

        def compare(text: str, right: Any = right, program: str = program) -> dict[str, str]:
            found = dict[str, Any]()
            for key, answer in re.findall(r"^TREE (\d+ [A-Z]+) (.*)$", text, re.MULTILINE):
                plain = answer.translate(str.maketrans("{}", "[]"))
                found[key] = json.loads(re.sub("[Tt]rue", "1", re.sub("[Ff]alse", "0", plain)))
                if "CHARTS" in key:
                    found[key] = [
                        sorted(map(list, prune(map(tuple, chart)))) for chart in found[key]
                    ]
            return {
                f"{program}: {key.split()[1].lower()} | tree {key}": ""
                if found.get(key) == ours
                else f"{ours}, {program}: {found.get(key)}"
                for key, ours in right.items()
            }

        yield Question(f"scripts of {program}", program, text, compare)
