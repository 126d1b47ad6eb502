"""The grammar of constraints: a text becomes relations between linear forms. Nothing is ever evaluated as code.

    relation = sum {(= | <= | >=) sum}
    sum      = term {(+ | -) term}
    term     = factor {(* | /) factor}, and * may be left out after a number or a parenthesis: 2 (x + y)
    factor   = number | column | ( sum ) | (+ | -) factor

Numbers are exact fractions, so that 0.1 + 0.2 is 0.3 and what cancels is exactly 0.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping
from difflib import get_close_matches
from fractions import Fraction
from typing import NamedTuple, NoReturn

from dpmask.errors import JobError

_QUOTES = "`'\""
_RELATIONS = {"=": "=", "==": "=", "<=": "<=", "≤": "<=", ">=": ">=", "≥": ">="}
_SIGNS = {"+": "+", "-": "-", "−": "-", "*": "*", "×": "*", "·": "*", "/": "/", "(": "(", ")": ")"}
_REFUSED = {
    "<": "a bound includes its end: write <=",
    ">": "a bound includes its end: write >=",
    "!=": "only =, <= and >= can be kept",
    "≠": "only =, <= and >= can be kept",
    "**": "a power is not linear",
    "^": "a power is not linear",
    ",": "write a decimal number with a point",
    "%": "write a percentage as a number, 0.16 for 16 %",
}
_SYMBOLS = sorted({**_RELATIONS, **_SIGNS, **_REFUSED}, key=len, reverse=True)
_DIGITS = "0123456789"
_DEEPEST = 50
_LONGEST = 100
_SHOWN = 300


class ConstraintError(JobError):
    """A constraint that cannot be used; the message shows it and points at the part."""


class LinearForm(NamedTuple):
    """A sum of columns times numbers, plus a number, and where it stands in the text."""

    terms: Mapping[str, Fraction]
    number: Fraction
    start: int
    end: int

    def plus(self, other: LinearForm, factor: int) -> LinearForm:
        """The sum with factor * other, without the columns that cancel."""
        terms = dict(self.terms)
        for column, coefficient in other.terms.items():
            terms[column] = terms.get(column, Fraction(0)) + factor * coefficient
        kept = {column: coefficient for column, coefficient in terms.items() if coefficient}
        return LinearForm(kept, self.number + factor * other.number, self.start, other.end)

    def times(self, factor: Fraction, start: int, end: int) -> LinearForm:
        """The product with a number."""
        terms = {column: coefficient * factor for column, coefficient in self.terms.items() if factor}
        return LinearForm(terms, self.number * factor, start, end)


class _Token(NamedTuple):
    kind: str  # "number", "name", a symbol, or "end"
    text: str
    start: int
    end: int


class ConstraintText:
    """One constraint: its relations, and errors that point into it."""

    def __init__(self, text: str, columns: Collection[str]) -> None:
        self.text = "".join(" " if c.isspace() else c if c.isprintable() else "\ufffd" for c in text)
        self._columns = {unicodedata.normalize("NFC", column): column for column in columns}
        self._tokens = list(self._tokenise())
        self._at = 0
        self._depth = 0

    def relations(self) -> Iterator[tuple[str, LinearForm]]:
        """Each relation as (=, <= or >=, left - right); `0 <= age <= 120` has two."""
        if self._kind == "end":
            self.refuse("it is empty", 0, 1)
        left = self._sum()
        if self._kind == "end":
            self.refuse("a constraint needs =, <= or >=", left.start, left.end)
        while self._kind in _RELATIONS:
            relation = _RELATIONS[self._next().kind]
            right = self._sum()
            yield relation, left.plus(right, -1)
            left = right
        if self._kind != "end":
            token = self._next()
            hint = "; a name with spaces stands in backticks" if token.kind == "name" else ""
            self.refuse(f"an operator is missing before '{token.text}'{hint}", token.start, token.end)

    def refuse(self, reason: str, start: int, end: int) -> NoReturn:
        """Raise, showing the text, or what is around the part of a long one, and pointing at the part."""
        first = max(start - _SHOWN // 2, 0) if len(self.text) > _SHOWN else 0
        shown = self.text[first : first + _SHOWN]
        marks = " " * _width(self.text[first:start]) + "^" * max(_width(shown[start - first : end - first]), 1)
        raise ConstraintError(f"constraint '{shown.strip()}': {reason}\n    {shown}\n    {marks}")

    @property
    def _kind(self) -> str:
        return self._tokens[self._at].kind

    def _next(self) -> _Token:
        token = self._tokens[self._at]
        self._at += token.kind != "end"
        return token

    def _sum(self) -> LinearForm:
        total = self._term()
        while self._kind in {"+", "-"}:
            sign = 1 if self._next().kind == "+" else -1
            total = total.plus(self._term(), sign)
        return total

    def _term(self) -> LinearForm:
        product = self._factor()
        while self._kind in {"*", "/"} or self._multiplies():
            divide = self._kind == "/"
            if self._kind in {"*", "/"}:
                self._next()
            product = (self._quotient if divide else self._product)(product, self._factor())
        return product

    def _multiplies(self) -> bool:
        return self._tokens[self._at - 1].kind in {"number", ")"} and self._kind in {"name", "("}

    def _product(self, left: LinearForm, right: LinearForm) -> LinearForm:
        if left.terms and right.terms:
            self.refuse("a product of columns is not linear", left.start, right.end)
        many, one = (left, right) if left.terms else (right, left)
        return many.times(one.number, left.start, right.end)

    def _quotient(self, left: LinearForm, right: LinearForm) -> LinearForm:
        if right.terms:
            self.refuse("division by a column is not linear", left.start, right.end)
        if right.number == 0:
            self.refuse("division by zero", left.start, right.end)
        return left.times(1 / right.number, left.start, right.end)

    def _factor(self) -> LinearForm:
        token = self._next()
        if token.kind in {"+", "-"}:
            inside = self._nested(token, self._factor)
            return inside.times(Fraction(1 if token.kind == "+" else -1), token.start, inside.end)
        if token.kind == "(":
            inside = self._nested(token, self._sum)
            if self._kind != ")":
                self.refuse("this parenthesis is not closed", token.start, token.end)
            return inside._replace(start=token.start, end=self._next().end)
        if token.kind == "number":
            return LinearForm({}, self._number(token), token.start, token.end)
        if token.kind != "name":
            self.refuse("a number or a column is missing here", token.start, token.end)
        return LinearForm({self._column(token): Fraction(1)}, Fraction(0), token.start, token.end)

    def _nested(self, token: _Token, inner: Callable[[], LinearForm]) -> LinearForm:
        self._depth += 1
        if self._depth > _DEEPEST:
            self.refuse(f"more than {_DEEPEST} signs or parentheses inside each other", token.start, token.end)
        form = inner()
        self._depth -= 1
        return form

    def _number(self, token: _Token) -> Fraction:
        value = float(token.text)
        if value == float("inf") or len(token.text) > _LONGEST:
            self.refuse("this number is too large or too long", token.start, token.end)
        return Fraction(token.text) if value else Fraction(0)  # a number like 1e-999999999 would fill the memory

    def _column(self, token: _Token) -> str:
        name = unicodedata.normalize("NFC", token.text)
        if name not in self._columns:
            close = get_close_matches(name, self._columns, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"known: {', '.join(self._columns)}"
            longer = [one for one in self._columns if len(one) > len(name) and self.text.startswith(one, token.start)]
            hint = f"names with signs or spaces stand in quotes: '{longer[0]}'" if longer else hint
            self.refuse(f"there is no column '{token.text}'; {hint}", token.start, token.end)
        return self._columns[name]

    def _tokenise(self) -> Iterator[_Token]:
        at, text = 0, self.text
        while at < len(text):
            if text[at] == " ":
                at += 1
                continue
            token = self._token_at(at)
            yield token
            at = token.end
        yield _Token("end", "", len(text.rstrip()), len(text.rstrip()) + 1)

    def _token_at(self, at: int) -> _Token:
        text = self.text
        if text[at] in _QUOTES:
            end = text.find(text[at], at + 1)
            if end < 0:
                self.refuse("this quote is not closed", at, len(text))
            return _Token("name", text[at + 1 : end], at, end + 1)
        if text[at].isalpha() or text[at] == "_":
            end = _end_of_name(text, at)
            return _Token("name", text[at:end], at, end)
        end = _end_of_number(text, at)
        if end > at:
            return _Token("number", text[at:end], at, end)
        symbol = next((symbol for symbol in _SYMBOLS if text.startswith(symbol, at)), "")
        if not symbol or symbol in _REFUSED:
            self.refuse(_REFUSED.get(symbol, f"'{text[at]}' is not understood"), at, at + max(len(symbol), 1))
        return _Token(_SIGNS.get(symbol, symbol), symbol, at, at + len(symbol))


def _end_of_name(text: str, at: int) -> int:
    """Letters, digits, _ and ., and the marks that some scripts put on letters."""
    while at < len(text) and (text[at].isalnum() or text[at] in "_." or unicodedata.category(text[at])[0] == "M"):
        at += 1
    return at


def _end_of_number(text: str, at: int) -> int:
    """12, 1.5, .5, 1e3, 2.5e-3; `at` itself if no number stands there."""
    end = _skip_digits(text, at)
    digits = end - at
    if text[end : end + 1] == ".":
        fraction = _skip_digits(text, end + 1)
        digits += fraction - end - 1
        end = fraction
    if not digits:
        return at
    if text[end : end + 1] in {"e", "E"}:
        first = end + 1 + (text[end + 1 : end + 2] in {"+", "-"})
        last = _skip_digits(text, first)
        return last if last > first else end
    return end


def _skip_digits(text: str, at: int) -> int:
    while at < len(text) and text[at] in _DIGITS:
        at += 1
    return at


def _width(text: str) -> int:
    """How many places a terminal gives to a text: none to combining marks, two to wide letters."""
    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in {"W", "F"}) for c in text)
