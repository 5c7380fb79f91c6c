"""The rooms: imports point one way, never in a circle; rooms stay small and explain themselves."""

import ast
import functools
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "agentgyms": {"agentgyms"},
    "env_servers": {"env_servers", "agentgyms"},
    "harness": {"harness", "agentgyms"},
}
"""Each package, and the packages that it may import."""

ORDER = {
    "agentgyms": (
        "__main__", "cli", "certification", "testing", "adapters", "envs", "__init__", "recording",
        "registration", "serving", "remote", "models", "data", "processes", "tools", "exact",
        "core",
    ),
    "agentgyms.envs.appworld": (
        "env", "options", "snapshot", "metrics", "code_runner", "sources", "engine", "mini",
        "sandbox", "observations", "world",
    ),
    "agentgyms.envs.webshop": (
        "browser", "env", "expert", "sources", "rules", "shop", "build", "goals", "catalogue",
        "search", "storage", "product",
    ),
    "env_servers": (
        "__main__", "appworld_engine", "gate", "webshop_site", "retriever", "command_lines",
        "__init__", "http", "play", "sessions", "observability",
    ),
    "harness": (
        "__main__", "cli", "training", "reporting", "audit", "evaluation", "preflight", "runs",
        "rollouts", "inference", "annotators", "losses", "credit", "model", "prompts",
        "distributed", "config", "types", "__init__",
    ),
}  # fmt: skip
"""The rooms of each package, top to bottom: a room imports only rooms below it."""

ONLY_IN = {
    "appworld": ("agentgyms/envs/appworld/sandbox/child/",),
    "torch": ("harness/",),
    "transformers": ("harness/",),
    "flask": (
        "env_servers/",
        "agentgyms/serving/",
        "agentgyms/adapters/mcp_http.py",
        "harness/training/gateway/",
    ),
    "httpx": ("agentgyms/adapters/",),
    "httpx2": ("agentgyms/models/", "agentgyms/data/download.py"),
    "requests": (),
    "urllib3": ("agentgyms/envs/webshop/browser/",),
    "openenv": ("agentgyms/adapters/",),
    "verifiers": ("agentgyms/adapters/",),
    "opentelemetry": ("agentgyms/core/tracing.py",),
    "ray": ("agentgyms/remote/ray_actors.py", "harness/training/verl/"),
    "waitress": ("agentgyms/serving/",),
    "selenium": ("agentgyms/envs/webshop/browser/",),
    "textworld": ("agentgyms/envs/alfworld/official/worker.py",),
    "alfworld": ("agentgyms/envs/alfworld/official/worker.py",),
}
"""Libraries that only some places import."""

MOST_ENTRIES = 20
FEWER = {"env_servers": 12}
WITH_MORE = {"harness/config/recipes"}  # one file for each recipe
FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def module_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in FILES}


def imported(module):
    """Yield the dotted names that a module imports anywhere: deferred and for types too."""
    path = MODULES[module]
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) + 1 - node.level] if node.level else []
            source = ".".join([*start, *([node.module] if node.module else [])])
            yield from (
                name if (name := f"{source}.{alias.name}") in MODULES else source
                for alias in node.names
            )


@functools.cache
def import_graph():
    """Return the modules that each module imports."""
    return {module: {n for n in imported(module) if n in MODULES} - {module} for module in MODULES}


def room(module, package):
    """Return the room of a module: the part of its name behind the package's."""
    return "__init__" if module == package else module[len(package) + 1 :].split(".")[0]


@pytest.mark.parametrize("package", ORDER)
def test_rooms_import_only_rooms_below_them(package):
    order = ORDER[package]
    inside = [m for m in MODULES if m == package or m.startswith(f"{package}.")]
    assert {room(m, package) for m in inside} - {"__init__"} <= set(order)
    against = [
        f"{module} -> {other}"
        for module in inside
        for other in import_graph()[module]
        if other in inside
        and order.index(room(module, package)) > order.index(room(other, package))
    ]
    assert against == []


def circles(graph):
    """Return the sets of modules that import each other in a circle (Tarjan 1972)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph[node]:
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            circle = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(circle) > 1:
                found.append(sorted(circle))

    for node in graph:
        if node not in index:
            visit(node)
    return found


def test_no_module_imports_itself_through_others():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == [["b", "c"]]
    assert circles(import_graph()) == []


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_packages_and_libraries_are_imported_where_they_belong(path):
    name = str(path.relative_to(ROOT))
    tops = {module.partition(".")[0] for module in imported(module_of(path))}
    assert tops & PACKAGES.keys() <= PACKAGES[name.partition("/")[0]]
    for library, places in ONLY_IN.items():
        assert library not in tops or name.startswith(places), f"{library} does not belong here"


def test_credit_is_pure_numpy():
    for module in MODULES:
        if module.startswith("harness.credit."):
            names = set(imported(module))
            assert not any(n.startswith(("torch", "harness.model", "logging")) for n in names), (
                module
            )


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_stay_small(path):
    lines = path.read_text().count("\n")
    assert lines <= 400, f"{lines} lines: is this one subject?"
    assert path.name not in ("utils.py", "helpers.py", "common.py"), "name the subject"


def tracked(folder):
    listed = subprocess.run(
        ["git", "ls-files", folder], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("this is no git checkout")
    return [Path(line) for line in listed.stdout.splitlines()]


@pytest.mark.parametrize("package", PACKAGES)
def test_folders_show_few_entries(package):
    entries = defaultdict(set)
    for path in tracked(package):
        for entry in (path, *path.parents):
            entries[str(entry.parent)].add(entry.name)
    many = {
        folder: len(names)
        for folder, names in entries.items()
        if len(names) > FEWER.get(folder, MOST_ENTRIES)
    }
    assert many.keys() - {".", *WITH_MORE} == set(), many


@pytest.mark.parametrize("package", PACKAGES)
def test_each_room_says_what_it_is(package):
    for init in (ROOT / package).rglob("__init__.py"):
        assert ast.get_docstring(ast.parse(init.read_text())), f"{init} needs a docstring"


def of_adapters():
    """Return the libraries that adapters import beside those that agentgyms always needs."""
    within = [module for module in MODULES if module.startswith("agentgyms.adapters")]
    tops = {name.partition(".")[0] for module in within for name in imported(module)}
    return tops - sys.stdlib_module_names - {"agentgyms", "gymnasium", "numpy", "PIL"}


def test_importing_agentgyms_is_cheap_and_brings_no_engine_and_no_adapter():
    """It does not even ask for them, for here they are mostly not installed."""
    heavy = {"torch", "flask", "textworld", "alfworld", "transformers", "matplotlib", "requests"}
    heavy |= {"httpx2", "opentelemetry", "ray"} | of_adapters()
    assert heavy >= {"openenv", "verifiers", "torchrl", "inspect_ai", "mcp", "tinker_cookbook"}
    code = f"""
import sys, time
class Finder:
    asked = set()
    def find_spec(self, name, *_):
        self.asked |= {{name, name.partition(".")[0]}}
sys.meta_path.insert(0, Finder())
start = time.process_time()
import agentgyms
spent = time.process_time() - start
print(spent, sorted(Finder.asked & {heavy | {"agentgyms.adapters"}}))
"""
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(3)
    ]
    seconds, heavy = min(run.stdout.split(" ", 1) for run in runs)
    assert heavy.strip() == "[]"
    assert float(seconds) < 0.5


_BAD_BEGINNING = re.compile(r"(\w+: )?(Of|Those|Whose|That which)\b")


def test_words_are_plain():
    """Docstring lines and arguments begin with their noun; names say what a thing is."""
    mistakes = []
    for path in (ROOT / package for package in PACKAGES):
        for file in sorted(path.rglob("*.py")):
            place = file.relative_to(ROOT)
            if file.parent.name == "generated":  # a digest of its text names the data that it makes
                continue
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                    lines = str(node.value.value).split("\n")
                    mistakes += [
                        f"{place}:{node.lineno + i}: begins with a fragment: {line.strip()}"
                        for i, line in enumerate(lines)
                        if _BAD_BEGINNING.match(line.strip())
                    ]
                name = getattr(node, "name", None)
                if isinstance(name, str) and name.startswith("of_"):
                    mistakes.append(f"{place}:{node.lineno}: the name {name} says no thing")
    assert not mistakes, "\n".join(mistakes)
