"""Mathematical input as exponent tuples."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from resgym.files import opened, parse_json, read_text
from resgym.game.formulas import PLAIN_DIGITS
from resgym.game.spec import MAX_DIMENSION
from resgym.polynomials.monomials import Exponents, check_points
from resgym.polynomials.reader import LETTER, Monomial, ParseError, read_monomials
from resgym.polynomials.singularities import is_singularity_name, random_family, singularity
from resgym.texts import shown

__all__ = [
    "CoefficientWarning",
    "ConstantWarning",
    "ParseError",
    "as_position",
    "parse",
    "parse_lines",
    "parse_text",
]

_FILE_SUFFIXES = (".txt", ".json", ".poly", ".sing", ".m2")
MAX_LENGTH = 50_000
"""Most characters of a text; the time to read it is proportional to them."""
MAX_FILE = 2**31
"""Bytes of a file with one position a line."""

_RING = re.compile(r"\s*ring\s+\w+\s*=[^;()]*,\s*\(([^()]*)\)\s*,\s*\w+\s*;")
_PREFIX = re.compile(r"(?:ideal|poly)\s+\w+\s*=")
_CALL = re.compile(r"\s*(?:monomialIdeal|ideal)\s*\(")
_COMMENT = re.compile(r"(?://|#)[^\n]*")
_ROWS = re.compile(r"(?:matrix\b)?(?!\[[^;]*,)[\s0-9,;|(){}\[\]]+")
_FAMILY = re.compile(r"\s*(?:random|bp)\s*\(", re.IGNORECASE)


class CoefficientWarning(UserWarning):
    """Coefficients other than 1 were given; only exponents matter to the game."""


class ConstantWarning(UserWarning):
    """The polynomial has a constant term: the origin is not on the hypersurface."""


def parse(source: Any, variables: str | Sequence[str] | None = None) -> Exponents:
    """Return the exponents of a polynomial, given in any usual form.

    Args:
        source: one of

            - a polynomial as text: ``x^2+y^3=z^5``, ``x**2 + y**3*z``, ``x^2y``, ``x²+y³``,
              Singular's short form ``x2+y2z+z3``, indexed variables ``x_1^2+x_2^3``; several,
              separated by commas, give the union of their monomials, as in
              ``monomialIdeal(x^13, x^6*y^4, y^9)``;
            - a name (``E8``, ``D_4``) or a family (``bp(2,3,5)``, seed 0);
            - exponent lists, as lists, arrays or JSON text; text as other programs write lists and
              matrices: ``{{2,1,0},{0,0,3}}``, ``[2 1 0; 0 0 3]``, one row a line;
            - a SymPy expression or ``Poly``, or an object with an ``exponents()`` method (Sage);
            - a file with one of these texts: a ``Path``, or text ending in .txt, .json, .poly,
              .sing or .m2. ``#`` and ``//`` start comments there.
        variables: names in the order of the axes, ``"x,y,z"`` or a list. By default the variables
            that occur, in alphabetical order (``w`` after ``z``, indices by number).

    Returns:
        Exponent tuples in order of appearance without repetitions, with ``.variables``. A list of
        exponents is returned as given.

    Raises:
        ParseError: the text cannot be parsed; a caret marks the character.
        ValueError: no term, a constant, fewer than 2 or more than 10 variables, an exponent below 0
            or above 2^59, or a text of more than 50,000 characters.
        TypeError: the source has another type.
    """
    names = _variable_names(variables)
    if isinstance(source, Path):
        return _parse_file(source, names)
    if isinstance(source, str):
        if "\n" not in source and source.strip().lower().endswith(_FILE_SUFFIXES):
            return _parse_file(Path(source.strip()), names)
        return parse_text(source, names)
    if hasattr(source, "free_symbols"):
        return _parse_sympy(source, names)
    if callable(getattr(source, "exponents", None)):
        source = [tuple(row) for row in source.exponents()]
    return _from_rows(source, names or getattr(source, "variables", None))


def as_position(points: Any) -> Exponents:
    """Parse whatever a caller gives as ``points`` (see `parse`); all functions here use this."""
    return points if isinstance(points, Exponents) else parse(points)


def _variable_names(variables: str | Sequence[str] | None) -> tuple[str, ...] | None:
    if variables is None:
        return None
    given = variables.split(",") if isinstance(variables, str) else list(variables)
    names = tuple(name.strip() for name in given)
    for name in names:
        if not re.fullmatch(rf"{LETTER}(_?\d+)?", name):
            raise ValueError(f"variables must be letters like x or x_1, got {shown(name)}")
    names = tuple(re.sub(rf"^({LETTER})(\d)", r"\1_\2", name) for name in names)
    if len(set(names)) != len(names):
        raise ValueError(f"variables must differ, got {', '.join(names)}")
    return names


def parse_lines(path: Path) -> Iterator[tuple[int, Exponents]]:
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
                    position = parse_text(text)
                except (TypeError, ValueError) as error:
                    what = str(error).partition("\n")[0]
                    raise ValueError(f"{path}, line {number}: {what}") from None
                yield number, position


def _parse_file(path: Path, names: tuple[str, ...] | None) -> Exponents:
    return parse_text(_blank(_COMMENT, read_text(path, "points", 4 * MAX_LENGTH)), names)


def _blank(pattern: re.Pattern[str], text: str) -> str:
    """Overwrite the matches with blanks, so that carets still mark the right place."""
    return pattern.sub(lambda found: " " * len(found[0]), text)


def parse_text(text: str, names: tuple[str, ...] | None = None) -> Exponents:
    """Parse a text that is never the name of a file."""
    if len(text) > MAX_LENGTH:
        raise ValueError(f"points must be a text of at most {MAX_LENGTH} characters, got more")
    if long := re.search("[0-9]{101}", text.translate(PLAIN_DIGITS)):
        raise ParseError(
            "points must have numbers of at most 100 digits, got more", text, long.start()
        )
    if not text.strip():
        raise ValueError("points must be a polynomial, a name or a list of exponents, got nothing")
    if is_singularity_name(text):
        return singularity(text)
    if _FAMILY.match(text):
        return random_family(text)
    if re.fullmatch("[A-Za-z]{4,}", word := text.strip()):
        letters = "*".join(word)
        message = f"{word} is not a polynomial or a name; write a product as {letters}"
        raise ParseError(message, text, text.index(word))
    if _ROWS.fullmatch(text.strip()):
        rows = [[*map(int, re.findall("[0-9]+", row))] for row in re.split(r"[\n;)\]}]", text)]
        if max(map(len, rows)) > 1:
            return _from_rows([*filter(None, rows)], names)
    if text.lstrip().startswith("["):
        return _from_rows(_read_json(text), names)
    text = text.rstrip().removesuffix(";").rstrip()
    ring = _RING.match(text)
    if ring:
        names = names or _variable_names(ring[1])
        text = " " * ring.end() + text[ring.end() :]
    text = _blank(_PREFIX, text)
    call = _CALL.match(text)
    if call and text.endswith(")"):
        text = " " * call.end() + text[call.end() : -1]
    if not text.strip():
        raise ValueError("points must be a polynomial, got none")
    return _from_monomials(*read_monomials(text), names, text)


def _from_monomials(
    monomials: list[Monomial], unusual: bool, names: tuple[str, ...] | None, text: str
) -> Exponents:
    """Return the exponents; warn about what the game ignores."""
    shown = text.strip()
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    if not monomials:
        raise ValueError(f"the polynomial must have a term, but all terms of {shown!r} cancel")
    used = {name for monomial in monomials for name in monomial}
    if not used:
        raise ValueError(f"the polynomial must have 2 to 10 variables, got the constant {shown!r}")
    names = names or tuple(sorted(used, key=_variable_order))
    if not 2 <= len(names) <= MAX_DIMENSION:
        hint = "; write indexed variables as x_1, x_2" if len(names) == 1 else ""
        raise ValueError(
            f"the polynomial must have 2 to {MAX_DIMENSION} variables, "
            f"{shown!r} has {len(names)} ({', '.join(names)}){hint}"
        )
    if unknown := sorted(used - set(names)):
        what = f"{unknown[0]} is not one of the variables {', '.join(names)}"
        raise ParseError(what, text, text.find(unknown[0][0]))
    points = _from_rows([[each.get(name, 0) for name in names] for each in monomials], names)
    points.exponents_only = unusual
    if unusual:
        text = "coefficients and signs are ignored: only the exponents matter to the game"
        warnings.warn(text, CoefficientWarning, stacklevel=4)
    if not all(map(any, points)):
        text = "a constant term: the hypersurface misses the origin, so the game is over"
        warnings.warn(text, ConstantWarning, stacklevel=4)
    return points


def _variable_order(name: str) -> tuple[str, int]:
    found = re.fullmatch(rf"({LETTER})_?(\d*)", name)
    letter, index = found.groups() if found else (name, "")
    return ("z~" if letter == "w" else letter), int(index or -1)


def _from_rows(rows: Any, names: Sequence[str] | None) -> Exponents:
    points = list(dict.fromkeys(check_points(rows)))
    if names is not None and len(names) != len(points[0]):
        raise ValueError(f"variables must be {len(points[0])} names, got {len(names)}")
    return Exponents(points, names)


def _read_json(text: str) -> Any:
    # Python writes tuples with parentheses; the same length keeps error positions right.
    plain = text.replace("(", "[").replace(")", "]")
    try:
        return parse_json(plain)
    except json.JSONDecodeError as error:
        position = min(error.pos, len(text.rstrip()) - 1)
        raise ParseError(f"not a list of exponents: {error.msg}", text, position) from None
    except ValueError as error:
        raise ParseError(f"not a list of exponents: {error}", text, 0) from None


def _parse_sympy(expression: Any, names: tuple[str, ...] | None) -> Exponents:
    import sympy

    symbols = sorted(expression.free_symbols, key=str)
    monomials: list[Monomial] = [{}]
    unusual = False
    if symbols:
        plain = getattr(expression, "as_expr", lambda: expression)()
        try:
            terms = sympy.Poly(plain, *symbols).terms()
        except sympy.PolynomialError:
            raise ValueError(f"points must be a polynomial, got {shown(expression)}") from None
        unusual = any(value != 1 for _, value in terms)
        monomials = [
            {str(symbol): power for symbol, power in zip(symbols, powers, strict=True) if power}
            for powers, _ in terms
        ]
    points = _from_monomials(monomials, unusual, names, shown(expression))
    points.sort(reverse=True)
    return points
