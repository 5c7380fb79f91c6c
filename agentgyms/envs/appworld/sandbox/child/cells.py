"""Runs cells of code in one namespace, with the outputs of AppWorld's engine."""

from __future__ import annotations
import __future__

import ast
import builtins
import linecache
import mmap
import re
import sys
import types
from contextlib import redirect_stderr, redirect_stdout, suppress
from typing import Any, Final

from . import forbidden, preamble
from .capture import Capture, shortened
from .failures import CELL, FAILED, ExecutionTimeout, summary, syntax_trace, trace

_FUTURES: Final = [getattr(__future__, name) for name in __future__.all_feature_names]
_ADDRESS: Final = re.compile(r"\bat 0x[0-9a-fA-F]{4,16}\b")
_MASK: Final = "at 0x7f0000000000"
# Memory for writing a traceback when code has used up its own.
_RESERVE_BYTES: Final = 32 << 20
_NO_ERROR: Final[dict[str, object]] = {"error_kind": "", "error": "", "status": None}


class Cells:
    """The namespace of an episode."""

    def __init__(self, kind: str, apis: Any) -> None:
        module = types.ModuleType("__main__")
        sys.modules["__main__"] = module
        self._names = vars(module)
        self._names["__builtins__"] = builtins
        self._names["open"] = forbidden.ipythons_open
        self.running = False
        """Whether code is running, which the time limit may interrupt."""
        self._num_cells = 0
        self._flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        self._reserve = mmap.mmap(-1, _RESERVE_BYTES)
        exec(preamble.imports(kind), self._names)  # noqa: S102 (a constant text)
        functions = "\n" * (preamble.FUNCTIONS_LINE - 1) + preamble.FUNCTIONS
        self._store_source(functions)
        for node in ast.parse(functions).body:
            self._run_node(node)
        self._names["apis"] = apis

    def run(self, code: str) -> dict[str, object]:
        """Run a cell and return its `output`, as the engine's `execute` does.

        Beside it stand `num_characters`, its length before the middle of a long one was cut out;
        `error_kind`, `error` and `status` as in `failures.summary`; and `timed_out`.
        """
        code = code.strip()
        try:
            nodes = ast.parse(code).body
        except SyntaxError as e:
            return _result(FAILED + syntax_trace(e), summary(e))
        except (ValueError, RecursionError, MemoryError) as e:  # of unusual sources
            return _result(FAILED + trace(e), summary(e))
        if not code:
            return _result("No code available to execute.", _NO_ERROR)
        self._store_source(code)
        printed = Capture()
        failure = self._run_nodes(nodes, printed)
        if failure is not None:
            return self._failure_result(failure)
        output, num_characters = printed.text(), printed.num_characters
        if not output.strip():
            output, num_characters = "Execution successful.", 21
        return _result(output, _NO_ERROR, num_characters)

    def _run_nodes(self, nodes: list[ast.stmt], printed: Capture) -> BaseException | None:
        """Run statements one by one; return the exception that ended them, or None."""
        try:
            with redirect_stdout(printed), redirect_stderr(Capture()):
                self.running = True
                try:
                    for node in nodes:
                        self._run_node(node)
                finally:
                    self.running = False
        except BaseException as e:
            return e
        return None

    def _run_node(self, node: ast.stmt) -> None:
        # Compiled one by one, as in the engine: an error of the compiler, such as a `return`
        # outside a function, is raised after the statements before it have run.
        module = ast.Module([node], [])
        compiled = compile(module, self._cell, "exec", self._flags, dont_inherit=True)
        for future in _FUTURES:
            self._flags |= compiled.co_flags & future.compiler_flag
        if compiled.co_flags & 0x80:  # CO_COROUTINE: it has an `await`
            _run_coroutine(eval(compiled, self._names))  # noqa: S307 (its purpose is to run code)
        else:
            exec(compiled, self._names)  # noqa: S102 (see above)

    @property
    def _cell(self) -> str:
        return CELL.format(self._num_cells)

    def _store_source(self, code: str) -> None:
        """Store a cell's source for the tracebacks of this and of later cells."""
        self._num_cells += 1
        lines = [f"{line}\n" for line in code.split("\n")]
        linecache.cache[self._cell] = (len(code), None, lines, self._cell)

    def _failure_result(self, failure: BaseException) -> dict[str, object]:
        self._reserve.close()
        try:
            text, error_fields = FAILED + trace(failure), summary(failure)
        except (MemoryError, RecursionError):
            kind = type(failure).__name__
            text, error_fields = FAILED + kind, {**_NO_ERROR, "error_kind": kind, "error": kind}
        timed_out = isinstance(failure, ExecutionTimeout)
        del failure  # its frames hold the memory of the code
        with suppress(OSError):  # then the next traceback may be shorter
            self._reserve = mmap.mmap(-1, _RESERVE_BYTES)
        return {**_result(text, error_fields), "timed_out": timed_out}


def _result(
    output: str, error_fields: dict[str, object], num_characters: int | None = None
) -> dict[str, object]:
    # Addresses differ between processes; the output must not.
    output = _ADDRESS.sub(_MASK, output)
    if num_characters is None:
        num_characters = len(output)
        output = shortened(output)
    return {"output": output, "num_characters": num_characters, **error_fields, "timed_out": False}


def _run_coroutine(coroutine: Any) -> None:
    """Run a coroutine that never waits, because there is no event loop."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    coroutine.close()
    raise RuntimeError("There is no event loop: code here can await only its own coroutines.")
