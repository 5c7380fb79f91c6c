"""The settings in which runs differ because their methods do.

`comparisons.toml` names them, each value with its reason. A method's row in the table of methods
names the settings of a run that it sets. For methods outside the file only the table counts.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from fnmatch import fnmatch
from functools import cache
from typing import Any, Final

from harness.config import methods
from harness.config.files import COMPARISONS
from harness.config.methods import Method

_ABSENT: Final = object()
_METHOD: Final = "method."
_CREDIT: Final = "method.credit."
_ANNOTATORS: Final = "method.annotators."
_METHOD_KEYS: Final = (_CREDIT, "method.loss.", _ANNOTATORS)
"""The sections that differ between two versions of one method."""


@cache
def tables() -> dict[str, Any]:
    """Return the content of `comparisons.toml`: `methods` and `comparison` tables."""
    return tomllib.loads(COMPARISONS.read_text(encoding="utf-8"))


def flat(config: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Return the settings of a configuration by their dotted names."""
    found: dict[str, Any] = {}
    for name, value in config.items():
        nested = isinstance(value, Mapping)
        found |= flat(value, f"{before}{name}.") if nested else {f"{before}{name}": value}
    return found


def differs(key: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Return whether two runs, all settings as `flat` returns them, differ in a setting.

    A key is such as `method.credit.gamma`. A method's setting without a value equals a missing one.
    """
    absent = None if key.startswith(_METHOD) else _ABSENT
    a, b = first.get(key, absent), second.get(key, absent)
    return bool(a != b) or isinstance(a, bool) != isinstance(b, bool)  # True == 1


def is_own(key: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Return whether a difference of two runs in a setting comes from their methods."""
    names = [str(one["method.name"]) for one in (first, second)]
    known = [name for name in names if name in tables()["methods"]]
    if names[0] == names[1]:  # two versions of it
        is_version_key = key.startswith(_METHOD_KEYS)
        return is_version_key and (not known or _sets(names[0], key) or _has(names[0], key))
    if any(_sets(name, key) for name in known):
        return True
    if (key in first) != (key in second):
        holder, other = names if key in first else reversed(names)
        lacks = tables()["methods"].get(other, {}).get("lacks", ())
        if (holder in known and _has(holder, key)) or any(fnmatch(key, one) for one in lacks):
            return True
    return len(known) < len(names) and _by_rows(key, names, (first, second))


def _has(method: str, key: str) -> bool:
    """Return whether a method names a setting of its estimator or annotators that others lack."""
    own = tables()["methods"][method]
    section, _, name = key.rpartition(".")
    filled = section.removeprefix(_ANNOTATORS) in own.get("annotators", ())
    return filled or (f"{section}." == _CREDIT and name in own["credit"])


def _sets(method: str, key: str) -> bool:
    """Return whether a method names a setting that it has another value of, or alone."""
    own = tables()["methods"][method].get("sets", ())
    return key in own or key in methods.METHODS[method].run


def _by_rows(key: str, names: list[str], runs: tuple[Mapping[str, Any], Mapping[str, Any]]) -> bool:
    """Return whether the rows of two methods explain a difference between their runs."""
    rows = methods.rows()
    first, second = (rows.get(name) for name in names)
    if _stated(first, key) != _stated(second, key):
        return True
    if key.startswith(_CREDIT):
        return not all(key in run for run in runs)
    if not key.startswith(_ANNOTATORS):
        return False
    filling = key.split(".")[2]
    return not all(row is not None and filling in row.annotators for row in (first, second))


def _stated(row: Method | None, key: str) -> str:
    """Return the value of a setting in a method's row, as JSON; "" for none."""
    if row is None:
        return ""
    stated = {"method.rows": row.rows, **row.run}
    stated |= {f"{_CREDIT}{name}": value for name, value in row.credit.items()}
    stated |= {f"method.loss.{name}": value for name, value in row.loss_settings.items()}
    for annotator, settings in row.annotators.items():
        stated |= {f"{_ANNOTATORS}{annotator}.{name}": v for name, v in settings.items()}
    return json.dumps(stated[key]) if key in stated else ""
