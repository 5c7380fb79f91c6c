"""Formulas as RL4VLM's card games read them: their value, exactly, and those with a value."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import Any, Final

_OPERATIONS: Final[dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: Fraction(a // b),
}
_MOST_POWER: Final = 64
_NO_FORMULA: Final = re.compile(r"^[*/)]|[-+*/(]$|[-+(][*/)]|\*/|/\*|[0-9)]\(|\)[0-9]")
"""A pattern that no formula has; it tells most other texts faster than a parser does."""


def value_of(formula: str) -> Fraction | None:
    """Return the value of a formula in Python's grammar of numbers, None if it has none.

    The original evaluates the text as Python, so neighbouring digits are one number, `**` is a
    power and `//` rounds down. It does so in floating point, where 8/(3-8/3) is not 24; here it is.
    """
    if _NO_FORMULA.search(formula):
        return None
    try:
        return _value(ast.parse(formula.strip(), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError):
        return None


def _value(node: ast.expr) -> Fraction:
    match node:
        case ast.Constant(value=int(number)) if type(number) is int:
            return Fraction(number)
        case ast.UnaryOp(op=ast.UAdd(), operand=inner):
            return _value(inner)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            base, power = _value(left), _value(right)
            if power.denominator > 1 or abs(power) > _MOST_POWER or abs(base) > _MOST_POWER:
                raise ValueError("a power that no target is near to")
            return Fraction(base**power)
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATIONS:
            return _OPERATIONS[type(operator)](_value(left), _value(right))
    raise ValueError("this is no number")


_Number = tuple[int, int]
"""A fraction: numerator and denominator, not shortened; the denominator is not 0."""
_Tree = Any
"""A number, or an operator and two trees."""


@lru_cache(maxsize=4096)
def solutions(numbers: tuple[int, ...], target: int) -> tuple[tuple[str, ...], ...]:
    """Return formulas of all `numbers` with the value `target`, as tokens, the shortest first."""
    found: set[tuple[str, ...]] = set()
    _search([((number, 1), number) for number in numbers], target, found)
    return tuple(sorted(found, key=lambda tokens: (len(tokens), tokens)))


@lru_cache(maxsize=4096)
def beginnings(
    numbers: tuple[int, ...], target: int, words: tuple[str, ...]
) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Return the shortest of the `solutions` in these words by each of its beginnings."""
    found: dict[tuple[str, ...], tuple[str, ...]] = {}
    for one in solutions(numbers, target):
        if set(one) <= set(words):
            for length in range(len(one) + 1):
                found.setdefault(one[:length], one)
    return found


def _search(left: list[tuple[_Number, _Tree]], target: int, found: set[tuple[str, ...]]) -> None:
    """Combine two of the numbers that are left, in each way, until one is left."""
    if len(left) == 1:
        (over, under), tree = left[0]
        if over == target * under:
            found.update(tokens for tokens, _ in _written(tree))
        return
    for i, j in combinations(range(len(left)), 2):
        ((a, b), x), ((c, d), y) = left[i], left[j]
        rest = [one for k, one in enumerate(left) if k not in (i, j)]
        made: list[tuple[_Number, _Tree]] = [
            ((a * d + c * b, b * d), ("+", x, y)),
            ((a * d - c * b, b * d), ("-", x, y)),
            ((c * b - a * d, b * d), ("-", y, x)),
            ((a * c, b * d), ("*", x, y)),
        ]
        if c:
            made.append(((a * d, b * c), ("/", x, y)))
        if a:
            made.append(((c * b, d * a), ("/", y, x)))
        for one in made:
            _search([*rest, one], target, found)


def _written(tree: _Tree) -> list[tuple[tuple[str, ...], str]]:
    """Return a tree's texts as tokens, in both orders of sums and products; its last operator."""
    if isinstance(tree, int):
        return [((str(tree),), "")]
    operator, left, right = tree
    orders = [(left, right), (right, left)] if operator in "+*" else [(left, right)]
    texts = []
    for one, two in orders:
        for first, inner in _written(one):
            for second, last in _written(two):
                strong = operator in "*/"
                behind = last in ("+", "-") if strong or operator == "-" else False
                behind = behind or (operator == "/" and last in ("*", "/"))
                tokens = (
                    *_bracketed(first, strong and inner in ("+", "-")),
                    operator,
                    *_bracketed(second, behind),
                )
                texts.append((tokens, operator))
    return texts


def _bracketed(tokens: tuple[str, ...], needed: bool) -> tuple[str, ...]:
    return ("(", *tokens, ")") if needed else tokens
