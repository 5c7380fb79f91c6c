"""Which files can have tests that an expression of marks asks for, by their text alone.

An import of all test files costs a worker half a minute, and few of them have marked tests.
"""

from __future__ import annotations

import functools
import itertools
import re
from pathlib import Path

from _pytest.mark.expression import Expression

HERE = Path(__file__).parent
MARK = re.compile(r"\bmark\.(\w+)")
IMPORTED = re.compile(r"^(?:from|import) (\w+)", re.MULTILINE)


def may_be_asked(file: Path, asked: str) -> bool:
    """Whether a test with some of the marks that are named for a file matches an expression."""
    expression = Expression.compile(asked)
    names = sorted(named_for(file) & set(re.findall(r"\w+", asked)))
    return any(
        expression.evaluate(lambda name, has=has, **_: name in has)
        for count in range(len(names) + 1)
        for has in itertools.combinations(names, count)
    )


def named_for(file: Path) -> set[str]:
    """Return the marks in the text of a file and of the tests' modules that it imports."""
    marks, imported = _names(file)
    helpers = _helpers()
    return marks.union(*(_names(helpers[one])[0] for one in imported if one in helpers))


@functools.cache
def _names(file: Path) -> tuple[set[str], set[str]]:
    text = file.read_text(encoding="utf-8")
    return set(MARK.findall(text)), set(IMPORTED.findall(text))


@functools.cache
def _helpers() -> dict[str, Path]:
    return {path.stem: path for path in HERE.rglob("*.py")}
