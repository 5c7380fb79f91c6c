"""Runs a block of Python and compares what it prints with the comments that tell it.

A comment behind a `print(...)`, or in lines below it that begin with `# ->`, is what it prints; so
is `# -> ...` behind any other expression its value. Blanks of any kind are one, and `...` stands
for anything.
"""

import ast
import contextlib
import io
import re


def run(code, name, namespace):
    """Execute a block, statement by statement.

    Args:
        code: The block.
        name: What tracebacks call it.
        namespace: Of the block; changed.

    Raises:
        AssertionError: A comment is not what was printed.
    """
    lines = code.splitlines()
    for node in ast.parse(code, name).body:
        shown = isinstance(node, ast.Expr)
        if not (shown and (told := _told(node, lines))):
            _execute(ast.Module([node], []), name, namespace)
            continue
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            value = eval(compile(ast.Expression(node.value), name, "eval"), namespace)
        printed = output.getvalue() if _is_print(node) else str(value)
        assert agrees(told, printed), f"{name}: the page says {told!r}, it is {printed!r}"


def _execute(module, name, namespace):
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(module, name, "exec"), namespace)


def _is_print(node):
    call = node.value
    return isinstance(call, ast.Call) and getattr(call.func, "id", "") == "print"


def _told(node, lines):
    """Return what the comment of an expression says it gives, "" without one."""
    behind = lines[node.end_lineno - 1].encode()[node.end_col_offset :].decode()
    comment = behind.partition("#")[2].strip()
    if comment.startswith("->") or (comment and _is_print(node)):
        return comment.removeprefix("->").strip()
    below = []
    for line in lines[node.end_lineno :]:
        if not line.startswith("# " if below else "# ->"):
            break
        below.append(line.lstrip("#").strip().removeprefix("->"))
    return " ".join(below).strip()


def agrees(told, printed):
    """Return whether a text is what a comment says, in which `...` stands for anything."""
    parts = [re.escape(" ".join(part.split())) for part in told.split("...")]
    pattern = r"\s*.*?\s*".join(part.replace(r"\ ", r"\s+") for part in parts)
    return re.fullmatch(pattern, " ".join(printed.split()), re.DOTALL) is not None
