"""The commands that programs print: in their texts, in comments of docker's files, in examples.

A command stands in backticks, behind a colon, `with` or a bracket, or begins the text.
"""

import ast
import re

import doc_blocks

ROOT = doc_blocks.ROOT
PROGRAM = "(?:harness|agentgyms|python3? -m|pip install|docker|docker-compose|hf)"
MARKED = re.compile(rf"(?<!`)`((?:{PROGRAM}|make|torchrun) [^`]+)`(?!`)")
_TOLD = re.compile(rf"(: |\(|with |^)({PROGRAM} [^`\n;,()]+)")
_SHOWN = re.compile(rf"^ {{2,}}({PROGRAM} .*?)(?:  .*)?$", re.MULTILINE)
_FILLED = "1"
"""What stands for a part that a program fills in: a number, a name, a path."""


def of_packages():
    """Yield `(place, command)` of each text in the packages, the help of programs among them."""
    for package in ("agentgyms", "env_servers", "harness"):
        for path in sorted((ROOT / package).rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            if re.search(rf"{PROGRAM} ", source):
                for line, text in _texts(ast.parse(source)):
                    for command in _commands(text):
                        yield f"{path.relative_to(ROOT)}:{line}", command


def _texts(tree):
    """Yield line and content of each string but those of modules, which nobody is shown."""
    skipped = {id(module.value) for module in tree.body[:1] if isinstance(module, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in ast.walk(node)}
            parts = (p.value if isinstance(p, ast.Constant) else _FILLED for p in node.values)
            yield node.lineno, "".join(parts)
        elif isinstance(getattr(node, "value", None), str) and id(node) not in skipped:
            yield node.lineno, node.value.replace("%s", _FILLED)


def _commands(text):
    marked = MARKED.findall(text)
    told = [
        command
        for before, command in _TOLD.findall(text)
        if before or re.search("^pip | --", command)
    ]
    return [" ".join(command.split()) for command in [*marked, *told]]


def of_comments():
    """Yield `(place, command)` of each comment in docker's files that shows one."""
    for path in sorted((ROOT / "docker").rglob("*")):
        if path.is_file():
            text = re.sub(r"^ *# ?", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
            for command in [*MARKED.findall(text), *_SHOWN.findall(text)]:
                yield str(path.relative_to(ROOT)), " ".join(command.split())


def of_examples():
    """Yield `(place, script)` of each example: the lines of its docstring that install and run."""
    for path in sorted((ROOT / "examples").rglob("*.py")):
        about = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        for part in about.split("\n\n"):
            if part.lstrip().startswith("pip install"):
                yield str(path.relative_to(ROOT)), part
