"""The tool `calculate` of the benchmark: Python's arithmetic, without running Python."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from agentgyms.envs.tau2.official.database import CallError

_CHARACTERS: Final = frozenset("0123456789+-*/(). ")
_MOST_BITS: Final = 100_000
_LONGEST: Final = 1000

_BINARY: Final[Mapping[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}


def calculate(expression: str) -> str:
    """Return the value of an expression, rounded to two digits.

    Raises `CallError` with the message that Python has for a wrong one. Powers of many thousand
    digits, which the benchmark computes for minutes, are refused.
    """
    if not all(character in _CHARACTERS for character in expression):
        raise CallError("Invalid characters in expression")
    if len(expression) > _LONGEST:
        raise CallError("the expression is too long")
    try:
        tree = ast.parse(expression.lstrip(" "), "<string>", "eval")
        return str(round(float(_value(tree.body)), 2))
    except (ArithmeticError, MemoryError, RecursionError, SyntaxError, TypeError, ValueError) as e:
        raise CallError(str(e)) from None


def _value(node: ast.AST) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Tuple):  # (): there are no commas
        return ()
    if isinstance(node, ast.UnaryOp):
        value = _value(node.operand)
        return -value if isinstance(node.op, ast.USub) else +value
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left), _value(node.right)
        if isinstance(node.op, ast.Pow):
            _check_power(left, right)
        return _BINARY[type(node.op)](left, right)
    if isinstance(node, ast.Call):
        raise TypeError(f"'{type(_value(node.func)).__name__}' object is not callable")
    raise SyntaxError("invalid syntax (<string>, line 1)")


def _check_power(base: Any, exponent: Any) -> None:
    whole = isinstance(base, int) and isinstance(exponent, int)
    if whole and exponent > 0 and base.bit_length() * exponent > _MOST_BITS:
        raise OverflowError("int too large to convert to float")
