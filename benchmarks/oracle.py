"""Compare results with those of Singular, Macaulay2, SageMath and polymake: ``make oracle``.

First it runs the scripts that resgym writes for named singularities, then those of random isolated
singularities in two, three and four variables, with random coefficients that are nondegenerate. It
exits with 1 if a result differs. Singular finds the spectrum from the Gauss-Manin connection, and
its `zetaDL` resolves the surface, so neither uses a Newton polyhedron. Both may take too long, and
`zetaDL` ends with an error in many cases: the summary counts what was compared.

Then it asks `benchmarks.oracle_parts`: in which charts the strict transform is smooth over the
origin, which typed polynomials are degenerate and what their Milnor numbers are (Singular), and
what the multiplier ideals of monomial ideals are (Macaulay2). It runs the scripts for Macaulay2,
SageMath and polymake where these programs are installed; scripts for OSCAR are not run.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import sympy

import resgym
from benchmarks.oracle_parts import Question, charts, ideals, scripts, typed
from resgym.polynomials.singularities import singularity_names
from resgym.texts import monomial_text

PARTS = ("singularities", "exports", "scripts", "charts", "typed", "ideals")

ENDINGS = {"macaulay2": "m2", "sage": "sage", "polymake": "pl"}
"""Of the scripts of programs that read them from a file."""

LARGEST = {2: 9, 3: 5, 4: 4}
"""The largest exponent of a random monomial, by the number of variables."""


class Case(NamedTuple):
    """A polynomial, its invariants by resgym, and the script that asks Singular."""

    polynomial: str
    found: Any
    script: str


def random_tree(generator: random.Random, dimension: int, variables: str = "x,y,z,w") -> Any:
    """Return a tree of random exponents, mostly isolated."""
    top, axes = LARGEST[dimension], range(dimension)
    points = {
        tuple(generator.randint(0, top) for _ in axes) for _ in range(generator.randint(0, 3))
    }
    for axis in axes:  # x^a or x^a*y, without which no singularity is isolated
        point, other = [0] * dimension, generator.choice(axes)
        point[axis] = generator.randint(1 + (other == axis), top)
        point[other] += other != axis
        points.add(tuple(point))
    exponents = sorted(filter(any, points))
    start = resgym.Exponents(exponents, variables.split(",")[:dimension])
    host = generator.choice(["spivakovsky", "zeillinger"])
    return resgym.resolution_tree(start, host, max_nodes=2000)


def random_case(generator: random.Random, dimension: int) -> Case | None:
    """Return a random case; None if its tree is large or its coefficients are degenerate."""
    tree = random_tree(generator, dimension)
    names, points = tree.variables, tree.start
    numbers = [generator.choice([-1, 1]) * generator.randint(1, 9) for _ in points]
    terms = zip(numbers, points, strict=True)
    polynomial = " + ".join(f"{number}*{monomial_text(p, names)}" for number, p in terms)
    try:
        found = tree.invariants(sympy.sympify(polynomial.replace("^", "**")))
    except ValueError:
        return None
    script = re.sub("(?<=poly germ = ).*?;", f"{polynomial};", tree.to_script("sing"))
    return Case(polynomial, found, script)


def cases(number: int, seed: int) -> Iterator[Case]:
    for kind in ("simple", "exceptional", "bimodal"):
        for name in singularity_names(kind):
            tree = resgym.resolution_tree(name, "spivakovsky")
            yield Case(name, tree.invariants(), tree.to_script("sing"))
    generator, isolated = random.Random(seed), 0
    while isolated < number:
        if case := random_case(generator, 2 + isolated % 3):
            isolated += case.found.isolated
            yield case


def awkward_trees(number: int, seed: int) -> Iterator[Any]:
    """Trees of named and of random singularities in variables that the programs use themselves."""
    generator = random.Random(seed)
    names = ["s,t,I", "h,j,x", "lambda,germ,space", "n,e,s", "d,f,g", "i,Q,R", "p,q,r"]
    simple, exceptional = map(singularity_names, ("simple", "exceptional"))
    for name in (*simple, *exceptional)[:number]:
        points = resgym.singularity(name)
        start = resgym.Exponents(points, generator.choice(names).split(",")[: points.dimension])
        yield resgym.resolution_tree(start, "zeillinger")
    for made in range(number):
        yield random_tree(generator, 2 + made % 2, generator.choice(names))


def ask(case: Case | Question, program: list[str], seconds: float) -> str:
    """Return what a program prints until it ends or its time is over."""
    if isinstance(case, Case) or case.program == "singular":
        return _printed(program, case.script, seconds)
    ending = ENDINGS[case.program]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"script.{ending}")
        path.write_text(case.script)
        return _printed([*program, str(path)], "", seconds)


def _printed(program: list[str], text: str, seconds: float) -> str:
    try:
        done = subprocess.run(
            program, input=text, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired as error:
        return (error.stdout or b"").decode()
    return done.stdout


def differences(case: Case, text: str) -> dict[str, str]:
    """Return each invariant that was compared, with the two values if they differ."""
    compared: dict[str, str] = {}
    found = case.found

    def compare(name: str, ours: object, theirs: object) -> None:
        compared[name] = "" if ours == theirs else f"{ours}, Singular: {theirs}"

    head, _, zeta = text.partition("topological zeta function at 0:")
    if milnor := re.search(r"not isolated\): (-?\d+)", head):
        kind = "Milnor number" if found.isolated else "not isolated"
        compare(kind, found.milnor_number if found.isolated else -1, int(milnor[1]))
    if (numbers := re.search(r"\[2\]:\s+([\d,\s]+)", head)) and found.isolated:
        values = map(Fraction, re.findall(r"\]=([-\d/]+)", head))
        pairs = zip(values, map(int, numbers[1].split(",")), strict=True)
        spectrum = {1 + value: number for value, number in pairs}
        try:
            compare(f"spectrum, d = {len(found.variables)}", found.spectrum, spectrum)
        except ValueError:
            compared["no spectrum in resgym (four variables)"] = ""
    if answer := re.search(r"\[1\]:\s+(\S*\d\S*)\n", zeta):
        same = not sympy.cancel(expression(str(found.zeta)) - expression(answer[1]))
        compare("zetaDL", str(found.zeta), str(found.zeta) if same else answer[1])
    return compared


def expression(text: str) -> Any:
    """Read 30s^2 + 1, or 30s2+1 as Singular writes it, and products in parentheses."""
    text = re.sub(r"s(\d)", r"s^\1", text)
    return sympy.sympify(re.sub(r"(?<=[\d)])(?=[s(])", "*", text).replace("^", "**"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--singular", default="Singular", help="the program")
    for name, program in (("macaulay2", "M2"), ("sage", "sage"), ("polymake", "polymake")):
        parser.add_argument(f"--{name}", default=program, help="another program")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--number", type=int, default=300, help="random cases of a part, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=10, help="most time for each")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    args = parser.parse_args()
    parts = args.parts
    programs = {
        "singular": [args.singular, "-q", "--no-tty"],
        "macaulay2": [args.macaulay2, "--script"],
        "sage": [args.sage],
        "polymake": [args.polymake, "--script"],
    }
    asked: list[Case | Question] = []
    if "singularities" in parts:
        asked += cases(args.number, args.seed)
    awkward = [*awkward_trees(min(20, args.number), args.seed)]
    if "exports" in parts:
        asked += [Case(str(t.start), t.invariants(), t.to_script("sing")) for t in awkward]
    if "scripts" in parts:
        for question in scripts(awkward, ENDINGS):
            if shutil.which(programs[question.program][0]):
                asked.append(question)
            else:
                print(f"{question.program} is not installed", file=sys.stderr)
    for name, make, number in (
        ("charts", charts, 300),
        ("typed", typed, 100),
        ("ideals", ideals, 100),
    ):
        if name in parts:
            asked += make(min(number, args.number), random.Random(args.seed))
    print(f"resgym has computed {len(asked)} questions", file=sys.stderr, flush=True)
    counts: Counter[str] = Counter()
    done = wrong = 0

    def answer(case: Case | Question) -> str:
        program = case.program if isinstance(case, Question) else "singular"
        # All ideals and all scripts are one question, and these programs take long to start.
        seconds = args.seconds if program == "singular" else 60 * args.seconds
        return ask(case, programs[program], seconds)

    with ThreadPoolExecutor(args.workers) as pool:
        for done, (case, text) in enumerate(zip(asked, pool.map(answer, asked), strict=True), 1):
            singularity = isinstance(case, Case)
            found = differences(case, text) if singularity else case.compare(text)
            about = case.polynomial if singularity else case.title
            if not found:
                counts["without an answer in time"] += 1
            for name, difference in found.items():
                counts[name.partition(" | ")[0]] += 1
                if difference:
                    wrong += 1
                    print(f"DIFFERENT {name} of {about}: {difference}", flush=True)
            if not done % 25:
                print(f"{done} compared", file=sys.stderr, flush=True)
    compared = ", ".join(f"{name} {number}" for name, number in sorted(counts.items()))
    print(f"seed {args.seed}, {done} questions: {compared}; {wrong} differences")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
