"""SECURITY.md: every promise names tests, and every test that it names exists."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
PROMISES = re.findall(r"^- (.*?)(?=^- |^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)


def named_tests(promise):
    """Return the tests of a promise as `(file, function)`: a file's name comes before theirs."""
    found, file = [], None
    for name in re.findall(r"`([^`]+)`", promise):
        if name.startswith("tests/"):
            file = name
        elif name.startswith("test_"):
            found.append((file, name))
    return found


@pytest.mark.parametrize("promise", PROMISES, ids=lambda text: text.split("**")[1])
def test_a_promise_is_held_by_tests_that_exist(promise):
    tests = named_tests(promise)
    assert tests
    for file, name in tests:
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        kinds = ast.FunctionDef | ast.AsyncFunctionDef
        assert name in {node.name for node in tree.body if isinstance(node, kinds)}, (file, name)


def test_the_page_has_its_parts():
    titles = re.findall(r"^#+ (.*)$", PAGE, re.MULTILINE)
    assert titles[:4] == [
        "Security",
        "Reporting",
        "Who may reach what",
        "What is promised, and the tests that hold it",
    ]
    assert "private vulnerability reporting" in PAGE
    assert len(PROMISES) > 15
    assert PAGE.count("`test_") == sum(len(named_tests(promise)) for promise in PROMISES)
