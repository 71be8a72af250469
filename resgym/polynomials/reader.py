"""A recursive-descent reader for polynomials, separated by commas.

Nothing is evaluated. Letters become variables, and text outside the grammar is an error with a
caret under the character. The length of the text, nesting, exponents and work are bounded, so
any input is read or refused at once.

Grammar (blanks are free between tokens)::

    list    = equation { "," equation }
    equation = sum [ "=" sum ]
    sum     = [sign] product { sign product }
    product = factor { ("*" | "/" | nothing) factor }
    factor  = (number | variable | "(" sum ")") [power]
    power   = ("^" | "**") (digits | "(" digits ")" | "{" digits "}")
              | digits that touch a variable (Singular's short form: x2 is x^2)
    variable = letter [ "_" digits | "_{" digits "}" ]
"""

from __future__ import annotations

import re
from typing import NoReturn

from resgym.game.formulas import PLAIN_DIGITS
from resgym.game.spec import MAX_COORDINATE
from resgym.texts import short

Monomial = dict[str, int]
"""Variables with their exponents above 0."""

Terms = dict[int, int]
"""A polynomial: coefficients modulo `_PRIME` by packed monomials. The exponents of a monomial are
packed into one integer, `_BITS` for each variable, so a product adds the integers."""

MAX_TERMS = 10_000
MAX_PRODUCTS = 100_000
MAX_NESTING = 50
MAX_POWER = 100
MAX_VARIABLES = 52

# Only whether a coefficient is 0 or 1 matters. Modulo this prime that is exact for all of up to 156
# digits, and no power of a number takes time.
_PRIME = 2**521 - 1
# Powers stop at 2^59, and no text is long enough for the sum of its exponents to reach 2^96.
_BITS = 96

_PLAIN = str.maketrans("·⋅×−", "***-")
_NUMBER = re.compile(r"[0-9]+(?:\.([0-9]+))?")
LETTER = "[A-Za-z]"
_VARIABLE = re.compile(rf"({LETTER})(?:_([0-9]+)|_\{{([0-9]+)\}}|(_))?([0-9]*)")
_INDEXED = re.compile(rf"{LETTER}\d+\s*(?:\^|\*\*)")
_WORD = re.compile("sin|cos|tan|exp|log|sqrt|pi")
_POWER = re.compile(
    r"(?:\^|\*\*)\s*(?:([0-9]+)|\(\s*([0-9]+)\s*\)|\{\s*([0-9]+)\s*\})"
    r"(?![0-9]|\s*(?:\.|\^|\*\*))"
)
_NO_POWER = re.compile(r"(?:\^|\*\*)\s*[({]?")


class ParseError(ValueError):
    """Text that is not a polynomial; the message marks the place.

    Args:
        message: what is wrong.
        text: the text that was read.
        position: index of the wrong character in ``text``.
    """

    def __init__(self, message: str, text: str, position: int) -> None:
        self.text = text
        self.position = position
        start = text.rfind("\n", 0, position) + 1
        end = text.find("\n", position)
        line = text[start : len(text) if end < 0 else end]
        column = position - start
        if column > 60:
            line, column = "..." + line[column - 40 :], 43
        if len(line) > column + 40:
            line = line[: column + 37] + "..."
        line = "".join(each if each.isprintable() else " " for each in line)
        super().__init__(f"{short(message, 300)}\n  {line}\n  {' ' * column}^")


def read_monomials(text: str) -> tuple[list[Monomial], bool]:
    """Return the monomials of a text, and whether a coefficient differs from 1.

    Like terms of a polynomial are added, and zero terms dropped. Several polynomials give the union
    of their monomials.

    Raises:
        ParseError: the text does not follow the grammar, or would take too long.
    """
    reader = _Reader(text)
    terms: Terms = {}
    unusual, more = False, ","
    while more:
        polynomial = reader.read_equation()
        unusual |= any(value != 1 for value in polynomial.values())
        terms |= polynomial
        reader.check_terms(terms)
        more = reader.take(",")
    if reader.peek():
        reader.unexpected()
    return [reader.exponents(monomial) for monomial in terms], unusual


class _Reader:
    def __init__(self, text: str) -> None:
        # Raised and lowered digits as typed ones.
        text = re.sub("[⁰¹²³⁴-⁹]+", lambda found: "^" + found[0].translate(PLAIN_DIGITS), text)
        text = re.sub("[₀-₉]+", lambda found: "_" + found[0].translate(PLAIN_DIGITS), text)
        self.text = text = text.translate(_PLAIN)
        self.at = self.depth = self.products = 0
        self.names: dict[str, int] = {}
        # "x1^2" can only mean an indexed variable; then so does every "x1" of the text.
        self.indexed = _INDEXED.search(text) is not None

    def fail(self, message: str, position: int | None = None) -> NoReturn:
        raise ParseError(message, self.text, self.at if position is None else position)

    def unexpected(self) -> NoReturn:
        character = self.peek()
        early = "the polynomial ends too early"
        self.fail(f"unexpected {character!r} in the polynomial" if character else early)

    def peek(self) -> str:
        """Return the next character that is not blank; empty at the end."""
        while (character := self.text[self.at : self.at + 1]).isspace():
            self.at += 1
        return character

    def take(self, characters: str) -> str:
        """Read the next character if it is one of these; otherwise read nothing."""
        character = self.peek()
        if character not in characters:
            return ""
        self.at += len(character)
        return character

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Read what matches next, if anything."""
        self.peek()
        found = pattern.match(self.text, self.at)
        if found:
            self.at = found.end()
        return found

    def read_equation(self) -> Terms:
        """Return the left side minus the right side, if there is one."""
        terms = self.read_sum()
        if self.take("="):
            self.add(terms, self.read_sum(), -1)
        return terms

    def read_sum(self) -> Terms:
        total: Terms = {}
        sign = self.take("+-") or "+"
        while sign:
            self.add(total, self.read_product(), 1 if sign == "+" else -1)
            sign = self.take("+-")
        return total

    def read_product(self) -> Terms:
        product = self.read_factor()
        while character := self.peek():
            if self.take("/"):
                start = self.at
                divisor = self.read_factor()
                if set(divisor) - {0}:
                    self.fail("division by a variable: exponents must be at least 0", start)
                if not divisor:
                    self.fail("division by zero", start)
                product = self.multiply(product, {0: pow(divisor[0], -1, _PRIME)})
            elif self.take("*") or character == "(" or re.match(LETTER, character):
                product = self.multiply(product, self.read_factor())
            elif character in "0123456789":
                self.fail("a number after a factor: write x^2 for a power and 2*x for a product")
            else:
                break
        return product

    def read_factor(self) -> Terms:
        character = self.peek()
        start = self.at
        base: Terms = {}
        if found := self.match(_NUMBER):
            value = int(found[0].replace(".", ""))
            self.add(base, {0: value * pow(10, -len(found[1] or ""), _PRIME)})
        elif found := self.match(_WORD):
            letters = "*".join(found[0])
            self.fail(
                f"{found[0]} is not a variable or number; write a product as {letters}", start
            )
        elif found := self.match(_VARIABLE):
            base, touching = self.variable(found)
            if touching:  # Singular's short form
                return self.power(base, int(touching), start)
        elif character == "(":
            base = self.read_parenthesis()
        else:
            self.unexpected()
        if found := self.match(_POWER):
            return self.power(base, int(found[found.lastindex or 0]), start)
        if self.match(_NO_POWER):
            self.peek()
            self.fail("an exponent must be one whole number, at least 0")
        return base

    def variable(self, found: re.Match[str]) -> tuple[Terms, str]:
        """Read a variable, and the digits after it that are not its index."""
        if found[4]:
            self.fail("an index must be a whole number, as in x_1", found.end(4))
        index, touching = found[2] or found[3], found[5]
        if self.indexed and not index:
            index, touching = touching, ""
        name = f"{found[1]}_{index}" if index else found[1]
        slot = self.names.setdefault(name, len(self.names))
        if slot == MAX_VARIABLES:
            self.fail(f"more than {MAX_VARIABLES} variables", found.start())
        return {1 << _BITS * slot: 1}, touching

    def read_parenthesis(self) -> Terms:
        opening = self.at
        self.depth += 1
        if self.depth > MAX_NESTING:
            self.fail(f"more than {MAX_NESTING} parentheses inside each other")
        self.take("(")
        inside = self.read_sum()
        if not self.peek():
            self.fail("this parenthesis is not closed", opening)
        if not self.take(")"):
            self.unexpected()
        self.depth -= 1
        return inside

    def power(self, base: Terms, exponent: int, start: int) -> Terms:
        if len(base) == 1:
            ((monomial, value),) = base.items()
            highest = max([1, *self.exponents(monomial).values()]) * exponent
            if highest > MAX_COORDINATE:
                self.fail("an exponent must be at most 2^59", start)
            return {monomial * exponent: pow(value, exponent, _PRIME)}
        if exponent > MAX_POWER:
            self.fail(f"a sum to a power above {MAX_POWER}", start)
        result: Terms = {0: 1}
        for _ in range(exponent):
            result = self.multiply(result, base)
        return result

    def multiply(self, left: Terms, right: Terms) -> Terms:
        self.products += len(left) * len(right)
        if self.products > MAX_PRODUCTS:
            self.fail(f"more than {MAX_PRODUCTS} products of terms")
        product: Terms = {}
        for monomial, value in left.items():
            self.add(product, right, value, monomial)
        return product

    def add(self, total: Terms, terms: Terms, factor: int = 1, monomial: int = 0) -> None:
        """Add terms times a factor and a monomial; drop zero terms."""
        for other, value in terms.items():
            at = monomial + other
            total[at] = (total.get(at, 0) + factor * value) % _PRIME
            if not total[at]:
                del total[at]
        self.check_terms(total)

    def check_terms(self, terms: Terms) -> None:
        if len(terms) > MAX_TERMS:
            self.fail(f"more than {MAX_TERMS} terms", min(self.at, len(self.text) - 1))

    def exponents(self, monomial: int) -> Monomial:
        powers = (monomial >> _BITS * slot & 2**_BITS - 1 for slot in range(len(self.names)))
        return {name: power for name, power in zip(self.names, powers, strict=True) if power}
