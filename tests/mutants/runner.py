"""Runs tests on mutants: `python runner.py` in the Python that has the tests' packages.

It answers JSON lines. Every request is run by a child that is forked after the packages of others
were imported, and before any of ours: so a mutant costs its tests alone. The child imports the
mutant in place of the module; no file is changed.
"""

import importlib
import json
import os
import resource
import select
import signal
import sys
import sysconfig
import tempfile
import threading
import time
import traceback
from importlib.machinery import SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parents[2]
OURS = ("agentgyms", "env_servers", "harness")
PRELOADED = "ignore::pytest.PytestAssertRewriteWarning"
MOST_MEMORY = 24 << 30
"""Bytes of address space of a child: a mutant may count without an end."""


class MutantFinder:
    """Finds one module, and gives it the code of a mutant."""

    def __init__(self, path, code):
        self.name, self.path, self.code = module_name(path), str(ROOT / path), code

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        loader = SourceFileLoader(name, self.path)
        loader.get_code = lambda _: compile(self.code, self.path, "exec")
        return spec_from_file_location(name, self.path, loader=loader)


def module_name(path):
    parts = Path(path).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


class Chosen:
    """Runs the chosen tests alone, in their order, and keeps the first one that fails."""

    def __init__(self, tests):
        self.order = {test: number for number, test in enumerate(tests)}
        self.failed = ""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        chosen = [item for item in items if item.nodeid in self.order]
        items[:] = sorted(chosen, key=lambda item: self.order[item.nodeid])

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.failed = self.failed or report.nodeid


class Coverage:
    """Notes which tests run which lines of the modules, and how long each test takes."""

    def __init__(self, paths):
        self.paths = {str(ROOT / path): path for path in paths}
        self.lines = {path: {} for path in paths}
        self.seconds, self.failed, self.test = {}, [], None

    def trace(self, frame, event, arg):
        path = self.paths.get(frame.f_code.co_filename)
        if path is None:
            return None
        lines = self.lines[path]

        def note(frame, event, arg):
            if event == "line" and self.test is not None:
                lines.setdefault(frame.f_lineno, set()).add(self.test)
            return note

        return note

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        self.test, begun = len(self.seconds), time.perf_counter()
        threading.settrace(self.trace)
        sys.settrace(self.trace)
        yield
        sys.settrace(None)
        threading.settrace(None)
        self.seconds[item.nodeid], self.test = time.perf_counter() - begun, None

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.failed.append(report.nodeid)


def run_pytest(arguments, plugin):
    settings.register_profile("mutants", deadline=None, derandomize=True, database=None)
    settings.load_profile("mutants")
    with tempfile.TemporaryDirectory() as folder:
        options = ["-p", "no:cacheprovider", "-W", PRELOADED, f"--basetemp={folder}/tests"]
        return int(pytest.main([*options, *arguments], plugins=[plugin]))


def baseline(paths, tests, options):
    """Run all tests; return their seconds and failures, lines with the numbers of the tests that

    run them, and the packages of others that were imported.
    """
    coverage = Coverage(paths)
    code = run_pytest([*options, *tests], coverage)
    packages = {name.partition(".")[0] for name in sys.modules}
    outside = Path(sysconfig.get_path("purelib"))
    return {
        "exit": code,
        "failed": coverage.failed,
        "tests": list(coverage.seconds.items()),
        "lines": {p: {n: sorted(t) for n, t in of.items()} for p, of in coverage.lines.items()},
        "packages": sorted(p for p in packages if (outside / p).is_dir() and p not in OURS),
    }


def mutant(path, code, tests):
    """Return the first test that fails on a mutant; "" if all pass."""
    sys.meta_path.insert(0, MutantFinder(path, code))
    chosen = Chosen(tests)
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    failed = run_pytest(["-x", *files], chosen)
    return {"killed_by": chosen.failed or ("the import" if failed else "")}


def preload(packages):
    for name in packages:
        try:
            importlib.import_module(name)
        except BaseException:  # some packages refuse to be imported alone
            continue
    return {}


def forked(work, arguments, timeout_s):
    """Return what a function returns in a child; `{"timeout": true}` if it takes too long."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _work(work, arguments, reading, writing)
    os.close(writing)
    answer, until = b"", time.monotonic() + timeout_s
    while (left := until - time.monotonic()) > 0:
        if select.select([reading], [], [], left)[0]:
            piece = os.read(reading, 1 << 20)
            answer += piece
            if not piece:
                break
    os.close(reading)
    try:
        os.killpg(child, signal.SIGKILL)  # with what its tests have started
    except ProcessLookupError:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if left <= 0:
        return {"timeout": True}
    return json.loads(answer) if answer else {"killed_by": "the end of the process"}


def _work(work, arguments, reading, writing):
    """Run a function in the child, whose output goes nowhere."""
    os.setsid()
    os.close(reading)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nowhere, number)
    with os.fdopen(writing, "wb") as pipe:
        try:
            answer = work(**arguments)
        except BaseException:
            answer = {"error": traceback.format_exc()}
        pipe.write(json.dumps(answer).encode())
    os._exit(0)


WORK = {"baseline": baseline, "mutant": mutant}


def main():
    sys.path.insert(0, str(ROOT))
    os.chdir(ROOT)
    for line in sys.stdin:
        request = json.loads(line)
        name, timeout_s = request.pop("do"), request.pop("timeout_s", 0)
        answer = preload(**request) if name == "preload" else forked(WORK[name], request, timeout_s)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
