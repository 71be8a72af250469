"""One grammar for polynomials, as people and programs write them.

Nothing is evaluated. A text is read as what it says, or refused with a caret under the place. Its
length, nesting, exponents, coefficients and work are bounded: it is read or refused at once.

Grammar (blanks are free between tokens)::

    list     = equation { "," equation }      bare, in brackets, or in ideal( ) and the like
    equation = sum [ "=" sum ]
    sum      = [sign] product { sign product }
    product  = factor { ("*" | "/" | "//" | nothing) factor }
    factor   = (number | variable | bracket sum bracket) [power]
    power    = ("^" | "**") (digits | "(" digits ")" | "{" digits "}"), or digits that touch
    variable = name [index]                   x, alpha, x_1, x_{1}, x(1), x[1], x1

Digits that touch a letter are its index if the variables are declared so or the text must mean it
(x1^2, x0*y1, x2*x3); otherwise they are its power, as in Singular's short form (x2+y3). Letters
that touch are a product if they usually are variables (xy, ad) or also stand alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from operator import add
from typing import NoReturn

from resgym.game.spec import MAX_COORDINATE
from resgym.polynomials.monomials import Terms
from resgym.texts import GREEK, Names, short

MAX_TERMS = 10_000
MAX_PRODUCTS = 50_000
MAX_NESTING = 150
MAX_VARIABLES = 52
MAX_NUMBER = 10**300
"""Largest numerator and denominator of a coefficient."""

_TOKEN = r"""(?P<word>[A-Za-z]+|[Α-Ωα-ορ-ω])
     (?:(?P<digits>[0-9]+)|(?P<index>_?\([0-9]+\)|\[[0-9]+\]|_\{[0-9]+\}|_[0-9]+))?
    |(?:\^|\*\*)\s*(?P<power>[0-9]+|\(\s*[0-9]+\s*\)|\{\s*[0-9]+\s*\})(?![0-9]|\s*(?:[.^]|\*\*))
    |//|==|--|\*\*|[^\s0-9]|[0-9]+(?:\.[0-9]+)?"""
_BRACKETS = {"(": ")", "[": "]", "{": "}"}

_ALONE = re.compile("(?<![A-Za-z])(?!(?<=[0-9])[eE][-+]?[0-9])[A-Za-z](?![A-Za-z])")
_PRODUCT = re.compile(r"(?!sqrt|.*(.).*\1)(?:[a-d]+|[q-z]+|[X-Z]+)")
_INDEXED = re.compile(
    r"(?!(?<=[0-9])[eE])[A-Za-z](?:0|1(?![0-9])|[0-9]+\s*(?:\^|\*\*))"
    r"|([A-Za-z])[0-9]+[^-+=,]{0,40}\1[0-9]"
)
# A function, the number of an equation, a line with a sign that starts or continues, x{2}, x[[2]]
# or x[1][2], a second name in f = x, g = y, a value as in x + a*y, a = 2; digits that touch a
# letter in a text with other powers, indices or products, or e in 2e3+x4 and 2e+3x.
_FUNCTION = re.compile(
    r"((?<![A-Za-z])[e-pA-W]\s?\(|(?m:^)[\[(][\w.]+[\])](?=\s*[\w(])|(?<![-+*/^,=(\[{\s])\n-."
    r"|[A-Za-z](?:[_\[({]{0,2}[0-9]+[\])}]?\s?[\[{]|\s?(?:\{|\[\[))[0-9]+\]?[\]}]"
    r"|(?<=,)\s*[e-qA-W](?:_?[\[({]?[0-9]+[\])}]?)?\s*:?=(?!=)"
    r"|(?<![^,;\n])\s*[A-Za-z](?:_?[0-9]+)?\s*==?\s*-?(?!0)[0-9./]+(?=\s*(?:[,;\n]|\Z)))"
)
_UNCLEAR = re.compile(
    r"(?s)(?:(?=.*(?:[A-Za-z]\s*[_[^]|[A-Za-z]\s*\*\*|[A-Za-z][0-9]+\s*\*\s*[A-Za-z]+[0-9]))"
    r".*?(?=(?<![0-9.])[A-Za-z][0-9]|[A-DF-Za-df-z][0-9])"
    r"|(?!.*(?<![A-Za-z0-9])[eE](?![A-Za-z]))"
    r"(?:(?=.*[A-DF-Za-df-z][0-9]).*?(?<![\w.^])[0-9]+(?=[eE][0-9])"
    r"|.*?(?<![\w.^])[0-9]+(?=[eE]\+[0-9](?![0-9]))))"
    r"([A-Za-z]\+?[0-9]+)"
)


class ParseError(ValueError):
    """Text that is not a polynomial; the message marks the place.

    Args:
        message: what is wrong.
        text: the text that was read.
        position: index of the wrong character in ``text``.
    """

    def __init__(self, message: str, text: str, position: int) -> None:
        self.message, self.position = message, position
        before = text[:position].rpartition("\n")[2][-40:]
        line = before + text[position:].partition("\n")[0][:40]
        line = "".join(each if each.isprintable() else " " for each in line)
        super().__init__(f"{short(message, 300)}\n  {line}\n  {' ' * len(before)}^")


def variable_order(name: str) -> tuple[str, int]:
    """Return the key that sorts names: ``w`` after ``z``, and indices by number."""
    letter = name.rstrip("0123456789")
    return letter.rstrip("_").replace("w", "z~"), int(name[len(letter) :] or -1)


class Reader:
    """Reads the polynomials of a text.

    Args:
        text: what they are a part of.
        places: where each stands, or several with commas between: first character, one after last.
        declared: the variables that are declared, if any.

    Attributes:
        names: the declared variables, or those that occur, in the usual order.
        polynomials: coefficients by exponents in the order of ``names``.

    Raises:
        ParseError: the text does not follow the grammar, or would take too long.
    """

    def __init__(
        self, text: str, places: Sequence[tuple[int, int]], declared: Names | None
    ) -> None:
        self._text, self._declared = text, declared or ()
        bare = ";".join(text[start:end] for start, end in places)
        self._letters = {name.partition("_")[0] for name in declared or _ALONE.findall(bare)}
        self._indexed = declared is None and _INDEXED.search(bare)
        unclear = _FUNCTION.search(bare) or (not self._indexed and _UNCLEAR.match(bare))
        if unclear and not declared:
            self._fail(
                f"{unclear[1].strip()} is unclear; write * for a product, ^ for a power, _ for an "
                "index, # before remarks",
                text.index(unclear[1]),
            )
        found = dict[str, int]()
        parts = [[*self._tokens(*place, found)] for place in places]
        self.names = [*(declared or sorted(found, key=variable_order))]
        for name, at in found.items():
            if name not in self.names[:MAX_VARIABLES]:
                self._fail(
                    f"{name} is not one of the variables {', '.join(self.names)[:60]}, "
                    f"at most {MAX_VARIABLES}",
                    at,
                )
        self._one = (0,) * len(self.names)
        self._depth = self._products = 0
        self.polynomials = [terms for part in parts for terms in self._read(part)]

    def _fail(self, message: str, place: int | None = None) -> NoReturn:
        raise ParseError(message, self._text, self._rest[-1][1] if place is None else place)

    def _tokens(self, start: int, end: int, names: dict[str, int]) -> Iterator[tuple[str, int]]:
        """Split into tokens with their places, one variable each; add the variables to names."""
        exponent = "" if {"e", "E"} & self._letters else "(?:[eE][+-]?[0-9]+)?"
        for token in re.compile(_TOKEN + exponent, re.VERBOSE).finditer(self._text, start, end):
            word, digits, index, power = token.group("word", "digits", "index", "power")
            at = token.start()
            if word:
                *first, last = self._variables(GREEK.get(word, word), at)
                if digits and (self._indexed or f"{last}_{digits}" in self._declared):
                    index, digits = digits, None
                mark = f"_{index.strip('_()[]{}')}" if index else ""
                for name in (*first, last + mark):
                    names.setdefault(name, at)
                    yield name, at
                power = digits
            elif not power:
                yield token[0], at
            if power:
                yield "^" + power.strip("(){} "), at
        yield "", end

    def _variables(self, word: str, at: int) -> Names:
        """Return the variables of a word, without index."""
        if word in self._letters or word in GREEK.values():
            return [word]
        if len(word) > 1 and not self._letters.issuperset(word) and not _PRODUCT.fullmatch(word):
            self._fail(f"{word[:40]} is not a variable or number; write * between variables", at)
        return word

    def _read(self, tokens: list[tuple[str, int]]) -> list[Terms]:
        """Return left sides minus right sides, if there are any, between the commas of tokens."""
        self._rest = tokens[::-1]
        found: list[Terms] = []
        while not found or self._take(","):
            found.append(self._expression())
            if self._take("=", "=="):
                self._add(found[-1], self._expression(), -1)
        if self._rest[1:]:
            self._unexpected()
        return found

    def _unexpected(self) -> NoReturn:
        token = self._rest[-1][0]
        found = f"unexpected {token!r}; write terms like 2*x^3*y, with whole exponents"
        self._fail(found if token else "the polynomial ends too early")

    def _take(self, *allowed: str) -> str:
        """Read the next token if it is one of these; otherwise read nothing."""
        return self._rest.pop()[0] if self._rest[-1][0] in allowed else ""

    def _expression(self, level: int = 0) -> Terms:
        """Read a sum at level 0, a product at level 1, a factor with its powers at level 2.

        The text that follows is left to the caller, who reads at a lower level.
        """
        token, place = self._rest[-1]
        self._depth += 1
        if self._depth > MAX_NESTING:
            self._fail(f"more than {MAX_NESTING} signs and parentheses inside each other", place)
        if self._take("+", "-"):
            left = self._add({}, self._expression(1), 1 if token == "+" else -1)
        elif token[:1].isdigit():
            self._rest.pop()
            left = self._add({}, {self._one: Fraction(token)})
        elif self._take(*self.names):
            left = {tuple(int(name == token) for name in self.names): Fraction(1)}
        elif self._take(*_BRACKETS):
            left = self._expression()
            if not self._rest[1:]:
                self._fail("this parenthesis is not closed", place)
            if not self._take(_BRACKETS[token]):
                self._unexpected()
        else:
            self._unexpected()
        while True:
            token, place = self._rest[-1]
            if token.startswith("^") and token != "^":
                left = self._power(left, int(token[1:]))
            elif level < 1 and self._take("+", "-"):
                self._add(left, self._expression(1), 1 if token == "+" else -1)
            elif level < 2 and (
                token in self.names or token in _BRACKETS or self._take(*"*/", "//")
            ):
                right = self._expression(2)
                if token == "(" and len(right) == 1:
                    self._fail("write * before one term in parentheses, # before remarks", place)
                if token in ("/", "//"):
                    if {*right} != {self._one}:
                        self._fail(
                            "division by a variable or 0: exponents must be at least 0", place
                        )
                    right = {self._one: 1 / right[self._one]}
                left = self._times(left, right)
            else:
                self._depth -= 1
                return left

    def _power(self, base: Terms, exponent: int) -> Terms:
        power = {self._one: Fraction(1)}
        for digit in f"{exponent:b}":
            power = self._times(power, power)
            if digit == "1":
                power = self._times(power, base)
        self._rest.pop()
        return power

    def _times(self, left: Terms, right: Terms) -> Terms:
        self._products += len(left) * len(right)
        if self._products > MAX_PRODUCTS:
            self._fail(f"more than {MAX_PRODUCTS} products of terms")
        total: Terms = {}
        for monomial, value in left.items():
            moved = {tuple(map(add, monomial, each)): other for each, other in right.items()}
            self._add(total, moved, value)
        return total

    def _add(self, total: Terms, terms: Terms, factor: Fraction | int = 1) -> Terms:
        """Add terms times a factor to a total without zero terms, and return it."""
        for monomial, value in terms.items():
            total[monomial] = new = total.get(monomial, Fraction(0)) + factor * value
            large = max(abs(new.numerator), new.denominator) > MAX_NUMBER
            if large or max(monomial, default=0) > MAX_COORDINATE:
                self._fail("exponents must be at most 2^59, and coefficients have 300 digits")
            if not new:
                del total[monomial]
        if len(total) > MAX_TERMS:
            self._fail(f"more than {MAX_TERMS} terms")
        return total
