"""Mathematical input as exponents and coefficients."""

from __future__ import annotations

import math
import re
import unicodedata
import warnings
from bisect import bisect
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import chain, compress
from pathlib import Path
from typing import Any

from resgym.files import opened, read_text
from resgym.game.spec import MAX_DIMENSION
from resgym.polynomials.monomials import Exponents, Terms, check_points
from resgym.polynomials.reader import MAX_PRODUCTS, Reader, variable_order
from resgym.polynomials.reader import ParseError as ParseError
from resgym.polynomials.singularities import named_position
from resgym.texts import GREEK, Names, shown

_FILE_SUFFIXES = (".txt", ".json", ".poly", ".sing", ".m2", ".sage", ".jl")
MAX_LENGTH = 50_000
"""Most characters of a text; the time to read it is proportional to them."""
MAX_FILE = 2**31
"""Bytes of a file with one position a line."""

_SPELLINGS = (
    ("\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]", "\n"),
    (r"\\\\|\\q?quad(?![a-z])", "\n"),
    (r"\\\n\s*", ""),  # Singular breaks long lines so
    (r"\\[dt]?frac\s*\{((?:[^{}]|\{[^{}]*\})*)\}\s*\{([^{}]*)\}", r"((\1)/(\2))"),
    (r"\A\s*\$\$?|\$\$?\s*\Z|\\(?:left|right|[^A-Za-z{}])|\"", " "),
    (r"[·⋅∙×]|\\cdot(?![a-z])|\\times(?![a-z])", "*"),
    ("[−–—]", "-"),
    ("(?<=[A-Za-z]) +(?=_)", ""),
    (r"⟨|\\langle", "("),
    (r"⟩|\\rangle", ")"),
    (r"\\", " "),
    ("([⁰¹²³⁴-⁹]+)", r"^{\1}"),
    ("([₀-₉]+)", r"_{\1}"),
)
_COMMENT = re.compile(
    r"(?<![0-9])//[^\n]*|//(?![0-9])[^\n]*|#(?!=[^=])[^\n]*|(?m:(?<!\S)--(?:\s[^\n]*|$))"
    r"|/\*(?s:.*?)(?:\*/|\Z)|(?m:^o[0-9]+ : [^\n]*)|(?m:^\(?%[io]?[0-9]+(?:\)|\s*=))"
)
_RING = re.compile(
    r"""\bring\s+\w+\s*=\s*(?:0|QQ)\s*,
        \s*(\((?:[^();]|\([^();]{1,40}\)){1,400}\)|[^,;]{1,40})\s*,[^;]*
    |\bQQ\s*\[([^][]{1,400})\](?!\s*[./])
    |\.?<([^<>;]{1,400})>\s*:?=\s*(?:\w{0,40}(?:Polynomial|Series)\w{0,40}\(\s*)?
        (?:QQ|ZZ|Rational\w{0,10}\(\)|Integer\w{0,10}\(\))\s*[\[,)][^;\n./]*(?=[;\n]|\Z)
    |\b\w{0,40}ring\(QQ,([^;\n)]{1,400})\)
    |\ of\ [^;\n]{0,40}Ring\ in\ ([^;\n]{1,400}?)\ over\ Rational\ Field""",
    re.VERBOSE | re.IGNORECASE,
)
_NAMES = re.compile(r"([A-Za-z]+|[Α-Ωα-ω])(?:[_([{]{0,2}([0-9]+)(?:\.\.\w*?([0-9]+))?)?[])}]*")
_STATEMENT = re.compile(r"(?:[^;\n]|(?<=[-+*/^,(=[{])\n|\n(?=\s*[-+*/^,)=\]}]))+")
_EXPORT = re.compile(
    r'"points":\s*([\[\]\s0-9,]*)|\bspace\b.*\n *(?:poly )?germ = ' + _STATEMENT.pattern
)
# "poly f =", "f :=", or "f =" if f is not a usual variable and not on the right side.
_DEFINITION = re.compile(
    r"""\s*(?:(?:poly|ideal|ring)\s+(?=\w)|(?=\w{1,20}(?:\([^()]*\))?\s*:=)
     |(?![a-dq-zX-Z]+\s*=|[a-dq-z]_?\{?[0-9]+\}?\s*=)(?!([A-Za-z]{1,20}+)[^=]*=[^;]*(?<![A-Za-z])\1(?![A-Za-z])))
    (?P<name>[A-Za-z]+|_(?=\[))(?:_?\{?[0-9]+\}?)?(?:\((?P<of>[\w\s,]+)\)|\[[0-9]+\])?\s*:?=(?!=)""",
    re.VERBOSE,
)
# What gives a name another value, or changes the ring.
_CHANGE = re.compile(
    r"\s*(?:q?ring\b|minpoly|(?:(?:poly|ideal)\s*)?(\w+)(?:\([^()]*\))?\s*[-+*/^]?:?=(?!=))"
)
# Brackets around the whole, with brackets inside twice.
_LIST = re.compile(
    r"""\s*(?:(?:[iI]deal|monomial_?[iI]deal|space)\s*)?(?:(\()|(\[)|\{)
    (?P<all>(?:[^][(){}]|[([{](?:[^][(){}]|[([{][^][(){}]*[])}])*[])}])*)
    (?(1)\)|(?(2)\]|\}))\s*""",
    re.VERBOSE,
)
_SCRIPT = re.compile(r"\b(?:poly|ideal|ring)\s+\w+\s*=")
# Not a number beside a list, as in [1, [2, 0]], which may be a coefficient.
_ROWS = re.compile(r"(?!(?s:.*)[0-9][ ,]*[\[({])(?:matrix\b)?[-\s0-9,;|(){}\[\]]+")
_ROW_END = re.compile(r"[;)\]}]|(?<=[^,\[({\s])[ \t]*\n")


class CoefficientWarning(UserWarning):
    """The coefficients and signs are ignored: only the exponents matter to the game."""


class ConstantWarning(UserWarning):
    """With a constant term the hypersurface misses the origin: the game is over."""


def parse(source: Any, variables: str | Names | None = None) -> Exponents:
    """Return the exponents of a polynomial, given in any usual form.

    Args:
        source: one of

            - a polynomial as text: ``x^2+y^3=z^5``, ``x**2 + y**3*z``, ``x^2y``, ``x²+y³``,
              Singular's short form ``x2+y2z+z3``, indexed variables ``x_1^2+x[2]^3``, LaTeX, or
              what computer algebra programs print, with the ring before it;
            - several polynomials, an ideal: ``x^2, y^3``, ``[x^2, y^3]``, ``ideal(x^2, y^3)``, or
              one a line;
            - a name (``E8``, ``D_4``) or a family (``bp(2,3,5)``, seed 0);
            - exponent lists, as lists, arrays or JSON text; text as other programs write lists and
              matrices: ``{{2,1,0},{0,0,3}}``, ``[2 1 0; 0 0 3]``, one row a line;
            - a SymPy expression, ``Poly`` or ``Eq``, or a polynomial of Sage;
            - a file with one of these texts: a ``Path``, or text with the ending of one, such as
              .txt, .poly, or .json, .sing, .m2, .sage and .jl of exported trees.

            ``#``, ``//``, and ``--`` between blanks start comments.
        variables: names in the order of the axes, ``"x,y,z"`` or a list. By default the variables
            that are declared, or that occur, in alphabetical order (``w`` after ``z``, indices by
            number).

    Returns:
        Exponent tuples in order of appearance without repetitions, with ``.variables``, and with
        coefficients in ``.generators``. An `Exponents` of these variables is returned as it is.

    Raises:
        ParseError: the text cannot be parsed; a caret marks the character.
        ValueError: no term, a constant, fewer than 2 or more than 10 variables, an exponent below 0
            or above 2^59, or a text of more than 50,000 characters.
        TypeError: the source has another type.
    """
    found = read(source, variables)
    return found if found is source else _warned(found)


def read(source: Any, variables: str | Names | None = None) -> Exponents:
    """Parse as `parse` does, but without warnings: ``.notices`` has them."""
    names = None if variables is None else _variable_names(variables)
    if isinstance(source, Exponents) and names in (None, source.variables):
        return source
    if isinstance(source, str):
        if "\n" in source or not source.strip().lower().endswith(_FILE_SUFFIXES):
            return parse_text(source, names)
        source = Path(source.strip())
    if isinstance(source, Path):
        return parse_text(read_text(source, "points"), names)
    if hasattr(source, "free_symbols"):
        return _parse_sympy(source, names)
    if callable(getattr(source, "exponents", None)):
        return _parse_sage(source, names)
    return _from_rows(source, names)


def _warned(found: Exponents) -> Exponents:
    for notice in found.notices:
        warnings.warn(notice.__doc__ or "", notice, stacklevel=3)
    return found


def _variable_names(given: str | Names) -> tuple[str, ...]:
    text = str(given)  # of any list, too
    if _NAMES.sub("", text).strip(" ,\n()[]:'") or not _NAMES.search(text):
        raise ValueError(f"variables must be names like x or x_1, got {shown(given)}")
    names = []
    for word, low, high in _NAMES.findall(text):
        marks = range(int(low), min(int(high), int(low) + MAX_DIMENSION) + 1) if high else [low]
        names += [GREEK.get(word, word) + (f"_{mark}" if low else "") for mark in marks]
    if len(set(names)) != len(names):
        raise ValueError(f"variables must differ, got {shown(', '.join(names))}")
    return tuple(names)


def parse_lines(path: str | Path) -> Iterator[tuple[int, Exponents]]:
    """Return the positions of a file, one a line, each with its line number, from 1.

    A line is text as for `parse`, but not the name of a file. Text after ``#`` or ``//`` is a
    comment; blank lines are skipped.

    Raises:
        ValueError: the file cannot be read, or a line is not a position; the message names both.
    """
    with opened(path, "starts", MAX_FILE) as file:
        # A line that is too long is read in parts; the first part is refused.
        for number, line in enumerate(iter(partial(file.readline, MAX_LENGTH + 2), ""), 1):
            if text := _COMMENT.sub("", line).strip():
                try:
                    position = _warned(parse_text(text))
                except (TypeError, ValueError) as error:
                    what = str(error).partition("\n")[0]
                    raise ValueError(f"{path}, line {number}: {what}") from None
                yield number, position


def parse_text(text: str, names: tuple[str, ...] | None = None) -> Exponents:
    """Parse a text that is never the name of a file."""
    if export := _EXPORT.search(text[:MAX_LENGTH]):
        text = export[1] or text[: export.end()]
    plain = _plain(text)
    if max(len(text), len(plain)) > MAX_LENGTH:
        raise ValueError(f"points must be a text of at most {MAX_LENGTH} characters, got more")
    try:
        return _parse_plain(plain, names)
    except ParseError as error:
        if plain == text:
            raise
        # The end of the shortest part whose plain spelling has the place.
        ends = range(len(text) + 1)
        end = bisect(ends, error.position, key=lambda end: len(_plain(text[:end])))
        raise ParseError(error.message, text, end - 1) from None


def _plain(text: str) -> str:
    """Return a text in the spelling of `Reader`, without comments and empty lines."""
    for pattern, plain in _SPELLINGS:
        text = re.sub(pattern, plain, text)
    text = _COMMENT.sub(" ", unicodedata.normalize("NFKC", text))
    return "\n".join(filter(None, map(str.rstrip, text.split("\n"))))


def _parse_plain(text: str, names: tuple[str, ...] | None) -> Exponents:
    if not text:
        raise ValueError("points must be a polynomial, a name or a list of exponents, got nothing")
    if long := re.search("[0-9]{101}|[0-9][eE][-+]?[0-9]{3}", text):
        raise ParseError(
            "points must have numbers of at most 100 digits, got more", text, long.start()
        )
    if named := named_position(text):
        return _from_rows(named, names)
    if _ROWS.fullmatch(text) and text.count("[") == text.count("]"):
        rows = [[*map(int, re.findall("-?[0-9]+", row))] for row in _ROW_END.split(text)]
        if max(map(len, rows)) > 1:
            return _from_rows(filter(None, rows), names)
    declared = ""
    if ring := _RING.search(text):
        declared = next(filter(None, ring.groups()))
        names = names or _variable_names(declared)
    plain = _RING.sub(lambda found: " " * len(found[0]), text)  # places stay
    found = dict[str, dict[str, tuple[int, int]]]()
    for part in _STATEMENT.finditer(plain):
        start, end = part.span()
        name = ""
        if head := _DEFINITION.match(plain, start, end):
            name = head["name"]
            start = head.end()
            if of := head["of"]:
                names = names or _variable_names(of)
        change = _CHANGE.match(plain, *part.span())
        if change and (change[1] in (None, *found) or change[1] in declared):
            name = change[0]
        if inside := _LIST.fullmatch(plain, start, end):
            start, end = inside.span("all")
        if body := plain[start:end].strip():
            found.setdefault(name, {})[body] = start, end
    if len(found) > 1 and (ring or _SCRIPT.search(plain)):
        found.pop("", None)  # commands
    if len(found) != 1:
        raise ValueError(
            f"points must be one polynomial or ideal, got {len(found)} with names {shown([*found])}"
            "; a ring must have the field 0 or QQ"
        )
    reader = Reader(text, [*found.popitem()[1].values()], names)
    return _from_terms(reader.polynomials, reader.names, names is not None, text)


def _from_terms(polynomials: Sequence[Terms], names: Names, declared: bool, text: str) -> Exponents:
    """Return the exponents, with notices of what the game ignores."""
    points = [*dict.fromkeys(chain(*polynomials))]
    if not points:
        raise ValueError(f"the polynomial must have a term, but all terms of {shown(text)} cancel")
    if not any(map(any, points)):
        raise ValueError(
            f"the polynomial must have 2 to 10 variables, got the constant {shown(text)}"
        )
    kept = [declared or any(column) for column in zip(*points, strict=True)]
    names = [*compress(names, kept)]
    if not 2 <= len(names) <= MAX_DIMENSION:
        hint = "; write indexed variables as x_1, x_2" if len(names) == 1 else ""
        raise ValueError(
            f"the polynomial must have 2 to {MAX_DIMENSION} variables, "
            f"{shown(text)} has {len(names)} ({', '.join(names)[:60]}){hint}"
        )
    generators = [
        {tuple(compress(point, kept)): value for point, value in terms.items()}
        for terms in polynomials
        if terms
    ]
    values = {*chain(*map(dict.values, generators))}
    known = all(isinstance(value, Fraction) for value in values)
    rows = dict.fromkeys(check_points(chain(*generators)))
    found = Exponents(rows, names, generators if known else ())
    found.exponents_only = values != {1}
    holds = found.exponents_only, (0,) * len(names) in found
    found.notices = tuple(compress((CoefficientWarning, ConstantWarning), holds))
    return found


def _from_rows(rows: Any, names: Names | None) -> Exponents:
    points = [*dict.fromkeys(check_points(rows))]
    if names and len(names) != len(points[0]):
        raise ValueError(f"variables must be {len(points[0])} names, got {len(names)}")
    return Exponents(points, names, getattr(rows, "generators", ()))


def _most_terms(source: Any) -> int:
    """Return an upper bound of the number of terms of a SymPy expression when it is expanded.

    Raises:
        ValueError: expanding it multiplies over `MAX_PRODUCTS` pairs of terms.
    """
    parts = [*map(_most_terms, source.args)]
    if source.is_Mul:
        found = products = math.prod(parts)
    elif source.is_Pow and source.exp.is_Integer and source.exp > 0:
        power = min(int(source.exp), MAX_PRODUCTS)
        terms = min(parts[0], MAX_PRODUCTS)
        found = math.comb(power + terms - 1, min(power, terms - 1))
        products = found**2
    else:
        return sum(parts) or 1
    if products > MAX_PRODUCTS:
        raise ValueError(f"points must have at most {MAX_PRODUCTS} products of terms, got more")
    return found


def _parse_sympy(source: Any, names: Names | None) -> Exponents:
    import sympy
    from sympy.polys.polyutils import dict_from_expr

    if isinstance(source, sympy.Equality):
        source = source.lhs - source.rhs
    symbols = {str(symbol): symbol for symbol in source.free_symbols}
    if names and not {*symbols} <= {*names}:
        raise ValueError(f"{shown(source)} is not in the variables {', '.join(names)}")
    gens = getattr(source, "gens", ())
    declared = names or [*map(str, gens)]
    variables = declared or sorted(symbols, key=variable_order)
    axes = [symbols.get(name, sympy.Symbol(name)) for name in variables]
    try:
        _most_terms(source)
        # Sparse: a ``Poly`` has a place for every exponent up to the largest one.
        values, _ = dict_from_expr(source.as_expr(), gens=axes or [sympy.Dummy()])
    except (AttributeError, sympy.BasePolynomialError):
        raise ValueError(f"points must be a polynomial, got {shown(source)}") from None
    if (
        (gens and source.domain.characteristic())
        or not all(n.is_Rational or n.is_Float for n in values.values() if n.is_number)
        or not all(gen.is_symbol for gen in gens)  # 1/x is none
        or len(symbols) < len(source.free_symbols)
    ):
        raise ValueError(
            f"points must be rational, with variables of different names, got {shown(source)}"
        )
    terms = {
        point: Fraction(str(value)) if value.is_number else value
        for point, value in sorted(values.items(), reverse=True)
        if value
    }
    return _from_terms([terms], variables, bool(declared), str(source))


def _parse_sage(source: Any, names: Names | None) -> Exponents:
    ring, rows = source.parent(), map(tuple, source.exponents())
    if ring.characteristic():
        raise ValueError(f"points must be rational, got {shown(source)} over {shown(ring)}")
    values = map(Fraction, map(str, source.coefficients()))
    terms = dict(zip(rows, values, strict=True))
    return _from_terms([terms], names or ring.variable_names(), True, str(source))
