"""Reads one polynomial, or several separated by commas, from text: a recursive-descent reader.

Nothing is evaluated: numbers become fractions, letters become variables, and everything else is an
error whose message puts a caret under the character.

Grammar (blanks are free between tokens)::

    list    = sum { "," sum }
    sum     = [sign] product { sign product }
    product = factor { ("*" | "/" | nothing) factor }
    factor  = (number | variable | "(" sum ")") [power]
    power   = ("^" | "**") (digits | "(" digits ")" | "{" digits "}") | superscripts
              | digits that touch a variable (Singular's short form: x2 is x^2)
    variable = letter [ "_" digits | "_{" digits "}" | lowered digits ]
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NoReturn

from resgym.game.spec import MAX_COORDINATE

__all__ = ["ParseError", "Polynomial", "read_polynomials"]

Monomial = tuple[tuple[str, int], ...]
Polynomial = dict[Monomial, Fraction]

MAX_TERMS = 10_000
MAX_NESTING = 50
MAX_DIGITS = 100
MAX_POWER = 100

_TIMES = "*·⋅×"
_MINUS = "-−"
_SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_PLAIN_INDEX = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_INDEXED = re.compile(r"[A-Za-z]\d+\s*(?:\^|\*\*)")
_FUNCTIONS = ("sin", "cos", "tan", "exp", "log", "sqrt")


class ParseError(ValueError):
    """Text that is no polynomial; the message shows the place.

    Args:
        message: what is wrong.
        text: what was read.
        position: index of the offending character in ``text``.
    """

    def __init__(self, message: str, text: str, position: int) -> None:
        self.text = text
        self.position = position
        start = text.rfind("\n", 0, position) + 1
        end = text.find("\n", position)
        line = text[start : len(text) if end < 0 else end].replace("\t", " ")
        column = position - start
        if column > 60:
            line, column = "..." + line[column - 40 :], 43
        if len(line) > column + 40:
            line = line[: column + 37] + "..."
        super().__init__(f"{message}\n  {line}\n  {' ' * column}^")


def read_polynomials(text: str) -> list[Polynomial]:
    """The polynomials of a comma-separated text, like terms added up, vanished terms dropped.

    Raises:
        ParseError: the text does not follow the grammar.
    """
    return _Reader(text).read_list()


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0
        # "x1^2" can only mean an indexed variable, and then every "x1" of the text does.
        self.indexed = _INDEXED.search(text) is not None

    def fail(self, message: str, position: int | None = None) -> NoReturn:
        where = self.at if position is None else position
        raise ParseError(message, self.text, where)

    def peek(self) -> str:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        return self.text[self.at] if self.at < len(self.text) else ""

    def read_list(self) -> list[Polynomial]:
        polynomials = [self.read_sum()]
        while self.peek() == ",":
            self.at += 1
            polynomials.append(self.read_sum())
        if self.peek():
            self.unexpected()
        return polynomials

    def unexpected(self) -> NoReturn:
        character = self.peek()
        if not character:
            self.fail("the polynomial ends too early")
        self.fail(f"unexpected {character!r} in the polynomial")

    def read_sum(self) -> Polynomial:
        total: Polynomial = {}
        first = True
        while True:
            character = self.peek()
            sign = -1 if character and character in _MINUS else 1
            if character == "+" or sign < 0:
                self.at += 1
            elif not first:
                return {monomial: value for monomial, value in total.items() if value}
            first = False
            for monomial, value in self.read_product().items():
                total[monomial] = total.get(monomial, Fraction(0)) + sign * value
            self.check_terms(total)

    def read_product(self) -> Polynomial:
        product = self.read_factor()
        while character := self.peek():
            if character in _TIMES:
                self.at += 1
                product = self.multiply(product, self.read_factor())
            elif character == "/":
                self.at += 1
                start = self.at
                divisor = self.read_factor()
                if set(divisor) - {()}:
                    self.fail("division by a variable: exponents must be at least 0", start)
                if not divisor.get((), 0):
                    self.fail("division by zero", start)
                product = {key: value / divisor[()] for key, value in product.items()}
            elif character.isascii() and (character.isalpha() or character == "("):
                product = self.multiply(product, self.read_factor())
            elif character.isdigit() and character not in _SUPERSCRIPTS:
                self.fail("a number after a factor: write x^2 for a power, 2*x for a product")
            else:
                break
        return product

    def read_factor(self) -> Polynomial:
        character = self.peek()
        start = self.at
        if character.isascii() and character.isdigit():
            base: Polynomial = {(): self.read_number()}
        elif character.isascii() and character.isalpha():
            base = {((self.read_variable(), 1),): Fraction(1)}
            # Digits that touch the letter are its power in Singular's short form.
            if self.at < len(self.text) and self.text[self.at] in "0123456789":
                return self.power(base, self.read_digits(), start)
        elif character == "(":
            base = self.read_parenthesis()
        else:
            self.unexpected()
        exponent = self.read_power()
        return base if exponent is None else self.power(base, exponent, start)

    def read_parenthesis(self) -> Polynomial:
        opening = self.at
        self.depth += 1
        if self.depth > MAX_NESTING:
            self.fail(f"more than {MAX_NESTING} parentheses inside each other")
        self.at += 1
        inside = self.read_sum()
        if self.peek() != ")":
            if not self.peek():
                self.fail("this parenthesis is not closed", opening)
            self.unexpected()
        self.at += 1
        self.depth -= 1
        return inside

    def read_variable(self) -> str:
        for function in _FUNCTIONS:
            if self.text.startswith(function, self.at):
                self.fail(f"{function} is no polynomial")
        letter = self.text[self.at]
        self.at += 1
        rest = self.text[self.at :]
        index = re.match(r"_([0-9]+)|_\{([0-9]+)\}|([₀-₉]+)", rest)
        if index is None and rest.startswith("_"):
            self.at += 1
            self.fail("an index must be a whole number, as in x_1")
        if index is None and self.indexed:
            index = re.match(r"([0-9]+)()()", rest)
        if index is None:
            return letter
        self.at += index.end()
        digits = index[1] or index[2] or index[3].translate(_PLAIN_INDEX)
        return f"{letter}_{digits}"

    def read_digits(self) -> int:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] in "0123456789":
            self.at += 1
        if self.at - start > MAX_DIGITS:
            self.fail(f"a number of more than {MAX_DIGITS} digits", start)
        return int(self.text[start : self.at])

    def read_number(self) -> Fraction:
        whole = self.read_digits()
        if not self.text.startswith(".", self.at):
            return Fraction(whole)
        self.at += 1
        start = self.at
        if self.peek() not in set("0123456789"):
            self.fail("a decimal point must be followed by digits")
        decimals = self.read_digits()
        return whole + Fraction(decimals, 10 ** (self.at - start))

    def read_power(self) -> int | None:
        character = self.peek()
        if character and character in _SUPERSCRIPTS:
            digits = ""
            while self.at < len(self.text) and self.text[self.at] in _SUPERSCRIPTS:
                digits += str(_SUPERSCRIPTS.index(self.text[self.at]))
                self.at += 1
            return int(digits[:MAX_DIGITS])
        if self.text.startswith("**", self.at):
            self.at += 2
        elif character == "^":
            self.at += 1
        else:
            return None
        closing = {"(": ")", "{": "}"}.get(self.peek(), "")
        if closing:
            self.at += 1
        character = self.peek()
        if character and character in _MINUS:
            self.fail("an exponent must be at least 0")
        if not character or character not in "0123456789":
            self.fail("an exponent must be a whole number")
        exponent = self.read_digits()
        if self.text.startswith(".", self.at):
            self.fail("an exponent must be a whole number")
        if closing:
            if self.peek() != closing:
                self.fail(f"an exponent must be a whole number; {closing!r} expected")
            self.at += 1
        if self.peek() == "^" or self.text.startswith("**", self.at):
            self.fail("two exponents in a row")
        return exponent

    def power(self, base: Polynomial, exponent: int, start: int) -> Polynomial:
        if exponent > MAX_COORDINATE:
            self.fail("an exponent must be at most 2^59", start)
        if len(base) == 1:
            ((monomial, value),) = base.items()
            if exponent > MAX_POWER and abs(value) != 1:
                self.fail(f"a number to a power above {MAX_POWER}", start)
            value = value**exponent if abs(value) != 1 else value ** (exponent % 2 + 2)
            return {tuple((name, power * exponent) for name, power in monomial if exponent): value}
        if exponent > MAX_POWER:
            self.fail(f"a sum to a power above {MAX_POWER}", start)
        result: Polynomial = {(): Fraction(1)}
        for _ in range(exponent):
            result = self.multiply(result, base)
        return result

    def multiply(self, left: Polynomial, right: Polynomial) -> Polynomial:
        product: Polynomial = {}
        for one, value in left.items():
            for two, other in right.items():
                powers = dict(one)
                for name, power in two:
                    powers[name] = powers.get(name, 0) + power
                monomial = tuple(sorted(powers.items()))
                product[monomial] = product.get(monomial, Fraction(0)) + value * other
            self.check_terms(product)
        return {monomial: value for monomial, value in product.items() if value}

    def check_terms(self, polynomial: Polynomial) -> None:
        if len(polynomial) > MAX_TERMS:
            self.fail(f"more than {MAX_TERMS} terms", min(self.at, len(self.text) - 1))
