"""Arithmetic and texts as the JVM has them."""

from __future__ import annotations

import struct
from functools import lru_cache


@lru_cache(maxsize=65536)
def java_hash(text: str) -> int:
    """Return `String.hashCode` of a text as an unsigned 32-bit integer."""
    total = 0
    units = text.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        total = (total * 31 + (high << 8 | low)) & 0xFFFFFFFF
    return total


def float32(value: float) -> float:
    """Return a double rounded to a float."""
    rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    return rounded


def int_div(dividend: int, divisor: int) -> int:
    """Return a quotient of integers rounded towards zero."""
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def to_int(value: float) -> int:
    """Return a double without its fraction, kept within 32 bits."""
    if value != value:
        return 0
    return int(max(-(2.0**31), min(2.0**31 - 1, value)))


def double_text(value: float) -> str:
    """Return a double as `Double.toString` writes it."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    sign = "-" if str(value).startswith("-") else ""
    size = abs(value)
    if size == 0:
        return sign + "0.0"
    digits, exponent = _digits(size)
    if 1e-3 <= size < 1e7:
        return sign + _plain(digits, exponent)
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent - 1}"


def _digits(size: float) -> tuple[str, int]:
    """Return the shortest digits of a number, and where its point is after them."""
    mantissa, _, power = f"{size!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    point = len(whole) + int(power or 0)
    digits = whole + fraction
    stripped = digits.lstrip("0")
    point -= len(digits) - len(stripped)
    return stripped.rstrip("0") or "0", point


def _plain(digits: str, point: int) -> str:
    if point <= 0:
        return "0." + "0" * -point + digits
    if point >= len(digits):
        return digits + "0" * (point - len(digits)) + ".0"
    return digits[:point] + "." + digits[point:]


class JavaError(Exception):
    """An error that an action raises in the real engine; the text is the one that Java gives."""
