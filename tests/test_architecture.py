"""The house: imports point one way, imports are cheap, rooms stay small."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ALLOWED = {
    "agentgyms": {"agentgyms"},
    "env_servers": {"env_servers", "agentgyms"},
    "harness": {"harness", "agentgyms"},
}
ONLY_IN = {
    "appworld": ("agentgyms/appworld/child/",),
    "torch": ("harness/",),
    "transformers": ("harness/",),
    "flask": ("env_servers/",),
    "httpx": ("agentgyms/adapters/",),
    "httpx2": ("agentgyms/chat/",),
    "openenv": ("agentgyms/adapters/",),
    "verifiers": ("agentgyms/adapters/",),
    "waitress": ("env_servers/",),
    "selenium": ("agentgyms/webshop/",),
    "textworld": ("agentgyms/alfworld/official_worker.py",),
    "alfworld": ("agentgyms/alfworld/official_worker.py",),
}
FILES = sorted(path for package in ALLOWED for path in (ROOT / package).rglob("*.py"))


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_one_way(path):
    name = str(path.relative_to(ROOT))
    tops = {module.partition(".")[0] for module in imported(path)}
    assert tops & ALLOWED.keys() <= ALLOWED[name.partition("/")[0]]
    for library, places in ONLY_IN.items():
        assert library not in tops or name.startswith(places), f"{library} does not belong here"


def test_credit_is_pure_numpy():
    for path in (ROOT / "harness/credit").glob("*.py"):
        modules = set(imported(path))
        assert not any(m.startswith(("torch", "harness.policy", "logging")) for m in modules), path


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_rooms_stay_small(path):
    lines = path.read_text().count("\n")
    assert lines <= 400, f"{lines} lines: is this one subject?"
    assert path.name not in ("utils.py", "helpers.py", "common.py"), "name the subject"


def test_importing_agentgyms_is_cheap_and_brings_no_engine():
    code = """
import sys, time
start = time.process_time()
import agentgyms
spent = time.process_time() - start
heavy = {"torch", "flask", "textworld", "alfworld", "transformers", "matplotlib", "requests"}
heavy |= {"httpx2"}
print(spent, sorted(heavy & set(sys.modules)))
"""
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(3)
    ]
    seconds, heavy = min(run.stdout.split(" ", 1) for run in runs)
    assert heavy.strip() == "[]"
    assert float(seconds) < 0.5
