"""The initial namespace of code: AppWorld's imports, its `print` and its `input`."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from typing import Any, Final

MINI_IMPORTS: Final = """\
import builtins
import calendar
import datetime
import itertools
import json
import math
import random
import re
from calendar import FRIDAY, MONDAY, SATURDAY, SUNDAY, THURSDAY, TUESDAY, WEDNESDAY
from collections import Counter, defaultdict
from collections.abc import Iterator
from copy import deepcopy
from datetime import date as Date, datetime as DateTime, time as Time
from functools import reduce
"""

APPWORLD_IMPORTS: Final = """\
import builtins
import calendar
import datetime
import itertools
import json
import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from copy import deepcopy
from functools import reduce

from pendulum import FRIDAY, MONDAY, SATURDAY, SUNDAY, THURSDAY, TUESDAY, WEDNESDAY
from appworld.common.datetime import pendulum
from appworld.common.datetime import VanillaDate as Date
from appworld.common.datetime import VanillaDateTime as DateTime
from appworld.common.datetime import VanillaTime as Time
"""

# Tracebacks contain these functions: their lines and line numbers are part of the engine's
# output.
FUNCTIONS: Final = """\
def print(*args, **kwargs):
    if not kwargs and len(args) == 1 and isinstance(args[0], (list, tuple, dict)):
        indent = 1 if len(json.dumps(args[0])) >= 100 else None
        builtins.print(json.dumps(args[0], indent=indent))
    else:
        builtins.print(*args, **kwargs)

def input(*args, **kwargs):
    raise Exception("input(..) is not allowed. All decisions must be made autonomously.")
"""
FUNCTIONS_LINE: Final = 26

PRELOADED: Final = (
    "array", "bisect", "contextlib", "csv", "difflib", "enum", "fractions", "heapq", "numbers",
    "operator", "pprint", "string", "textwrap", "typing", "unittest", "unittest.mock", "uuid",
    "decimal", "statistics", "dataclasses", "_strptime", "encodings.idna", "zoneinfo",
    "secrets", "unicodedata",
)  # fmt: skip
"""Modules that are loaded once for all episodes; AppWorld allows most of them."""


def warm(kind: str) -> None:
    """Load the modules that the preamble and code may import."""
    for name in PRELOADED:
        importlib.import_module(name)
    if kind == "appworld":
        _import_datetimes()
        importlib.import_module("yaml")
    exec(imports(kind), {})  # noqa: S102 (a constant text)


def remove_packages() -> None:
    """Remove installed packages from the import path; loaded ones stay."""
    sys.path[:] = [folder for folder in sys.path if not folder.endswith("-packages")]


def imports(kind: str) -> str:
    """Return the import lines of a kind of executor."""
    return APPWORLD_IMPORTS if kind == "appworld" else MINI_IMPORTS


def _import_datetimes() -> None:
    """Import AppWorld's date types in an empty package: its own would import the whole engine."""
    spec = importlib.util.find_spec("appworld")
    if spec is None or spec.submodule_search_locations is None:
        raise ModuleNotFoundError(f"{sys.executable} has no package appworld")
    locations = list(spec.submodule_search_locations)
    for name in ("appworld", "appworld.common"):
        package = types.ModuleType(name)
        package.__path__ = locations if name == "appworld" else [f"{p}/common" for p in locations]
        sys.modules[name] = package
    sys.modules["appworld"].common = sys.modules["appworld.common"]  # type: ignore[attr-defined]
    for name in ("common.datetime", "common.random", "apps.api_lib"):
        importlib.import_module(f"appworld.{name}")


def hide_own_modules(own: str) -> None:
    """Remove this package's modules from `sys.modules`; `own` is its name."""
    for name in [n for n in sys.modules if n == own or n.startswith(f"{own}.")]:
        del sys.modules[name]


def no_op(*_: Any, **__: Any) -> None:
    """Do nothing, whatever the arguments."""
