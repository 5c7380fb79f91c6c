"""Blind changes of inputs: the same seed gives the same inputs on every machine."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any, Final

_RAW: Final = (
    "NaN", "-Infinity", "1e400", "-0.0", "1" * 5000, "[" * 3000 + "]" * 3000, '{"a":' * 3000,
    '"\\ud800"', '"\\u0000"', "01", "'x'", "truE", '{"a":1,"a":2}', "",
)  # fmt: skip
"""Texts that stand for a value, and are no value of strict JSON or a hard one."""

_VALUES: Final[tuple[Any, ...]] = (
    None, True, False, 0, 1, -1, 2, 7, 255, 2**31, 2**53 + 1, -(2**63), 10**30, 10**400, 0.5, -1.5,
    1e308, 5e-324, "", " ", "0", "-1", "nan", "inf", "null", "true", "a" * 3000, "\ud800", "\x00",
    "\u00a0\u200b\u00ad\u200f", "\u202e", "\x1b[2J", "é漢\U0001f9ea", "../../etc/passwd",
    "/dev/zero", "{}", "%s%n", "$S", "\n", "\r\n\r\n", [], {}, [[]], [None], [0], [""], {"": None},
    {"png": ""}, [1, 2, 3], {"a": {"b": {"c": []}}},
)  # fmt: skip
_TEXTS: Final = (
    "\x00", "\n", "\r", "\u2028", "\ufeff", "\u00a0", "\u200b", "\ud800", "\u0130", "ß", "İ", "漢",
    "\U0001f9ea", "\x1b[31m", "'", '"', "\\", "`", "```", "{", "}", "[", "]", "(", ")", "<", ">",
    "<think>", "</think>", "<action>", "</action>", "<search>", "</answer>", "<code>", "</code>",
    "```python\n", "f'", "{x!r:", "%", "$", "#", ";", "=", ".", ",", ":", "-", "0", "9" * 50, "e9",
    "0x" + "f" * 4000, "and ", "lambda:", "true", "inf", "nan", "2024-02-30", '"""', "'''", "[[",
    "]]", "search[", "click[", "..", "/", "http://", "@", "(and ", "(not (= ", "\t",
)  # fmt: skip


def mutated(
    rng: random.Random, seeds: Sequence[bytes], kind: str, most_bytes: int = 1 << 16
) -> bytes:
    """Return a seed after one to four changes.

    Args:
        rng: Decides everything.
        seeds: At least one.
        kind: `json`, `lines`, `text` or `bytes`; one change in four is of bytes whatever the kind.
        most_bytes: Longest input.
    """
    data = rng.choice(seeds)
    for _ in range(rng.choice((1, 1, 2, 4))):
        change = _CHANGES[kind] if rng.random() < 0.75 else _bytes
        data = change(rng, data, seeds)[:most_bytes]
    return data


def _json(rng: random.Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return _text(rng, data, seeds)
    marks: dict[str, str] = {}
    changed = _changed(rng, value, marks)
    try:
        text = json.dumps(changed, ensure_ascii=rng.random() < 0.8)
    except (ValueError, RecursionError):
        return _bytes(rng, data, seeds)
    for mark, raw in marks.items():
        text = text.replace(f'"{mark}"', raw)
    return text.encode("utf-8", "surrogatepass")


def _changed(rng: random.Random, value: Any, marks: dict[str, str]) -> Any:
    """Return a JSON value with one change somewhere in it."""
    if isinstance(value, dict | list) and value and rng.random() < 0.85:
        keys: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
        key, copy = rng.choice(keys), value.copy()
        how = rng.random()
        if how < 0.08:
            del copy[key]
        elif how < 0.14 and isinstance(copy, dict):
            copy[rng.choice(("", "x", "\ud800", f"{key} ", str(key).upper()))] = copy.pop(key)
        elif how < 0.14:
            copy[key:key] = [copy[key]] * rng.choice((1, 2, 300))
        elif how < 0.20:
            copy[key] = copy[rng.choice(keys)]
        else:
            copy[key] = _changed(rng, value[key], marks)
        return copy
    if rng.random() < 0.2:
        mark = f"raw value {len(marks)}"
        marks[mark] = rng.choice(_RAW)
        return mark
    if isinstance(value, str) and rng.random() < 0.5:
        return _text(rng, value.encode("utf-8", "replace"), ()).decode("utf-8", "replace")
    if type(value) is int and rng.random() < 0.5:
        return value + rng.choice((-1, 1, -value * 2, 10, 1000))
    return rng.choice(_VALUES)


def _lines(rng: random.Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    lines = data.split(b"\n")
    number = rng.randrange(len(lines))
    how = rng.random()
    if how < 0.1:
        del lines[number]
    elif how < 0.2:
        lines[number:number] = [lines[rng.randrange(len(lines))]]
    elif how < 0.25:
        rng.shuffle(lines)
    elif how < 0.3:
        lines += rng.choice(seeds).split(b"\n")
    else:
        lines[number] = _json(rng, lines[number], seeds)
    return b"\n".join(lines)


def _text(rng: random.Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    at = rng.randrange(len(data) + 1)
    how = rng.random()
    if how < 0.6:
        piece = rng.choice(_TEXTS).encode("utf-8", "surrogatepass")
        times = rng.choice((1, 1, 1, 2, 40, 2000))
        return data[:at] + piece * times + data[at:]
    return _bytes(rng, data, seeds)


def _bytes(rng: random.Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    start, end = sorted((rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)))
    end = min(end, start + rng.choice((1, 4, 64, 1 << 16)))
    other = rng.choice(seeds) if seeds else data
    cut = rng.randrange(len(other) + 1)
    piece = rng.choice(
        (
            b"",  # removed
            data[start:end] * 2,
            rng.randbytes(end - start),
            bytes([rng.choice((0, 255, 10, 32, 34, 127))]) * (end - start),
            other[cut : cut + rng.choice((4, 64))],
            bytes(byte ^ (1 << rng.randrange(8)) for byte in data[start:end]),
        )
    )
    changed = data[:start] + piece + data[end:]
    return changed[: rng.randrange(len(changed) + 1)] if rng.random() < 0.1 else changed


_Change = Callable[[random.Random, bytes, Sequence[bytes]], bytes]
_CHANGES: Final[dict[str, _Change]] = {
    "json": _json, "lines": _lines, "text": _text, "bytes": _bytes
}  # fmt: skip
