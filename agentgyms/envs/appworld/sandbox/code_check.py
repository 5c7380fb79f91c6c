"""Refuses code before execution where AppWorld does, in AppWorld's words.

It does not make code safe: the process that runs it is confined by the kernel.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final, NamedTuple

from agentgyms.envs.appworld.sandbox import code_extraction
from agentgyms.envs.appworld.sandbox.child.forbidden import FUNCTIONS, MODULES

FAILED: Final = "Execution failed. Traceback:\n"
"""The beginning of the output of code that failed."""

_ALLOWED_MODULES: Final = MODULES - {"appworld"}
_BUILTINS: Final = frozenset({"exit", "quit", "open"})


class Refusal(NamedTuple):
    """Why code is not executed: AppWorld's output, and the reason in one line."""

    output: str
    reason: str


def refusal(code: str) -> Refusal | None:
    """Return why code must not run, None if it may; a syntax error is refused too."""
    try:
        tree = code_extraction.parse(code)
        found = _NameCollector(tree)
        found.visit(tree)
    except SyntaxError as e:
        output = f"Syntax error in line:\n{(e.text or '').rstrip()}\nMessage: {e.msg}"
        return Refusal(FAILED + output, f"SyntaxError: {e.msg}")
    except RecursionError:
        return _refused("The code is nested too deeply.")
    for kind, names in found.forbidden():
        if names:
            plural = "s" if len(names) > 1 else ""
            *others, last = sorted(names)
            listed = f"{', '.join(others)} and {last}" if others else last
            return _refused(f"Usage of the following {kind}{plural} is not allowed: {listed}.")
    return None


def _refused(reason: str) -> Refusal:
    return Refusal(FAILED + reason, reason)


class _NameCollector(ast.NodeVisitor):
    """Collects the modules that code imports and the functions that it calls, as AppWorld does."""

    def __init__(self, tree: ast.Module) -> None:
        self._modules: set[str] = set()
        self._called: set[str] = set()
        self._made_by: dict[str, str] = {}
        """The function that a variable's value came from, such as `pathlib.Path`."""
        self._aliases = dict(_aliases(tree))

    def forbidden(self) -> Iterator[tuple[str, set[str]]]:
        """Yield the forbidden ones by kind, in the order in which they are reported."""
        yield "module", self._modules - _ALLOWED_MODULES
        paths = {f"builtins.{path}" if path in _BUILTINS else path for path in self._called}
        yield "function", paths & FUNCTIONS

    def visit_Import(self, node: ast.Import) -> None:
        self._modules.update(alias.name.partition(".")[0] for alias in node.names)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.module:
            self._modules.add(node.module.partition(".")[0])

    def visit_Assign(self, node: ast.Assign) -> None:
        if isinstance(node.value, ast.Call) and (path := self._resolved(_path(node.value.func))):
            names = (target.id for target in node.targets if isinstance(target, ast.Name))
            self._made_by.update(dict.fromkeys(names, path))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        path = _path(node.func)
        first, dot, rest = path.partition(".")
        made = dot and self._made_by.get(first)
        self._called.add(f"{made}.{rest}" if made else self._resolved(path))
        self.generic_visit(node)

    def _resolved(self, path: str) -> str:
        """Return a path with its first name replaced by what it was imported from."""
        first, dot, rest = path.partition(".")
        return self._aliases.get(first, first) + dot + rest


def _aliases(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the names that imports outside functions bind, and what they name."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from ((alias.asname, alias.name) for alias in node.names if alias.asname)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module or ''}.{alias.name}"


def _path(node: ast.expr) -> str:
    """Return a dotted name such as `json.load`; a base that is not a name is left out."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([*([node.id] if isinstance(node, ast.Name) else []), *reversed(parts)])
