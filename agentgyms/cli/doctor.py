"""Checks packages, programs and data on this machine; names the command for what is missing."""

from __future__ import annotations

import platform
import shutil
import warnings
from importlib.metadata import PackageNotFoundError, version
from typing import Final, NamedTuple

from gymnasium.error import DependencyNotInstalled

from agentgyms.core.errors import BadOption, WorkerLost
from agentgyms.core.imports import install
from agentgyms.data import datasets
from agentgyms.envs.appworld.sandbox import executors
from agentgyms.envs.appworld.sandbox import install as appworld
from agentgyms.envs.scienceworld import engine as scienceworld
from agentgyms.envs.webshop.browser import launch


class Finding(NamedTuple):
    """The result of one check, in words; `advice` says how to get what is missing, or is ""."""

    subject: str
    ok: bool
    found: str
    advice: str = ""


_EXTRAS: Final = {
    "flask": "server",
    "waitress": "server",
    "selenium": "browser",
    "httpx2": "eval",
    "torch": "harness",
    "transformers": "harness",
    "vllm": "vllm",
    "alfworld": "alfworld",
}
_PROGRAMS: Final = (
    ("GPU", ("nvidia-smi",), "optional"),
    ("Docker client", ("docker",), "optional"),
    ("Chromium", launch.BROWSERS, f"optional: {launch.ADVICE}"),
    ("ChromeDriver", launch.DRIVERS, f"optional: {launch.ADVICE}"),
)


def examine() -> list[Finding]:
    """Return the findings on Python, packages, data sets and programs, without slow imports."""
    required = ("agentgyms", "gymnasium", "numpy")
    findings = [Finding("python", True, platform.python_version())]
    findings += [Finding(name, True, _version(name)) for name in required]
    for name, extra in _EXTRAS.items():
        found = _version(name)
        advice = f"optional: {install(extra)}"
        findings.append(Finding(name, found != "", found or "not installed", advice))
    findings += [_confinement(), _appworld(), *_scienceworld(), *_data_sets()]
    findings += [_program(what, names, advice) for what, names, advice in _PROGRAMS]
    return findings


def _confinement() -> Finding:
    """Start an executor of AppWorld's code and check its confinement."""
    subject = "confinement of agents' code"
    advice = "run agents that you do not trust in a container"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", executors.ConfinementWarning)
            missing = executors.confinement()["missing"]
    except (BadOption, OSError, WorkerLost) as e:
        return Finding(subject, False, str(e), advice)
    return Finding(
        subject, not missing, f"without {', '.join(missing)}" if missing else "whole", advice
    )


def _appworld() -> Finding:
    subject = "AppWorld engine"
    try:
        python = appworld.python()
    except DependencyNotInstalled as e:
        return Finding(subject, False, "not installed", f"optional: {e}")
    except BadOption:  # AGENTGYMS_DATA is invalid, as the finding on data sets says
        return Finding(subject, False, "not found", "optional: agentgyms setup appworld")
    return Finding(subject, True, f"{appworld.VERSION} in {python}")


def _scienceworld() -> list[Finding]:
    findings = []
    for subject, find in (
        ("ScienceWorld engine", scienceworld.find_python),
        ("Java", scienceworld.find_java),
    ):
        try:
            findings.append(Finding(subject, True, find()))
        except DependencyNotInstalled as e:
            findings.append(Finding(subject, False, "not installed", f"optional: {e}"))
    return findings


def _program(what: str, names: tuple[str, ...], advice: str) -> Finding:
    path = next(filter(None, map(shutil.which, names)), None)
    return Finding(what, path is not None, path or "not found", advice)


def _data_sets() -> list[Finding]:
    try:
        found = datasets.status()
    except BadOption as e:
        return [Finding("data", False, str(e), "set AGENTGYMS_DATA to a folder, or unset it")]
    return [
        Finding(
            f"data: {status.name}",
            status.folder is not None and not status.damage,
            status.damage or str(status.folder or "not here"),
            f"{'' if status.damage else 'optional: '}{datasets.command(status.name)}",
        )
        for status in found
    ]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
