"""What images install: locked by version and hash, complete, and no more than is needed."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from dockerfiles import DOCKER, DOCKERFILES, PROJECT, ROOT, instructions
from packaging.requirements import Requirement

LOCKED = sorted([*DOCKER.glob("requirements-*.txt"), ROOT / "requirements-appworld.txt"])


def _pins(path: Path) -> dict[str, str]:
    """Return the version of each package of a locked file, every one of which has hashes."""
    pins: dict[str, str] = {}
    for line in path.read_text().replace("\\\n", "").splitlines():
        if not line.startswith("#"):
            package, *hashes = line.split()
            assert re.fullmatch(r"[A-Za-z0-9._-]+(\[\w+\])?==[0-9][0-9A-Za-z.]*", package), line
            assert hashes, f"no hash: {line}"
            assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", one) for one in hashes)
            name, _, version = package.partition("==")
            pins[_normal(name.partition("[")[0])] = version
    return pins


def _normal(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


@pytest.mark.parametrize("path", LOCKED, ids=lambda path: path.name)
def test_locked_files_name_no_place_on_any_machine(path):
    assert _pins(path)
    assert not re.search(r"https?:|index|/tmp|find-links", path.read_text().partition("\n")[2])
    assert "docker/lock" in path.read_text()


def test_pip_takes_what_is_locked_and_nothing_else():
    [path] = DOCKERFILES
    run = " ".join(rest for name, rest in instructions(path) if name == "RUN")
    installs = re.findall(r"-m pip [^&;]*install ([^&;]*)", run)
    assert len(installs) == 4
    for options in installs:
        assert "--no-deps" in options
        if "/wheels/*.whl" not in options:
            assert {"--require-hashes", "--only-binary"} <= set(options.split())
    locked = {f"requirements-{kind}.txt" for kind in ("server", "browser", "build", "appworld")}
    assert {path.name for path in LOCKED} == locked


@pytest.mark.parametrize("extra", ["server", "browser"])
def test_pins_hold_everything_that_the_server_needs(extra):
    pins = _pins(DOCKER / f"requirements-{extra}.txt")
    optional = PROJECT["optional-dependencies"]
    lines = [*PROJECT["dependencies"], *optional["server"], *optional["sotopia"]]
    if extra == "browser":
        assert optional["browser"][0] == "agentgyms[server]"
        lines += optional["browser"][1:]
    if any(metadata.version(name) != version for name, version in pins.items()):
        pytest.skip("other versions are installed than images have, which need other packages")
    asked = [Requirement(line) for line in lines]
    missing, done = list(asked), set()
    while missing:
        requirement = missing.pop()
        name = _normal(requirement.name)
        assert name in pins, f"{requirement} is not pinned: run docker/lock"
        if name not in done:
            done.add(name)
            below = [Requirement(line) for line in metadata.requires(name) or []]
            extras = [{"extra": extra} for extra in ("", *requirement.extras)]
            missing += [r for r in below if r.marker is None or any(map(r.marker.evaluate, extras))]
    assert done == set(pins), f"nothing needs {sorted(set(pins) - done)}"
    for requirement in asked:
        assert requirement.specifier.contains(pins[_normal(requirement.name)])


def test_all_images_and_the_tests_have_the_same_versions():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    known = dict(line.split("==") for line in lines if "==" in line)
    known = {_normal(name): version for name, version in known.items()}
    for kind in ("server", "browser"):
        assert _pins(DOCKER / f"requirements-{kind}.txt").items() <= known.items()


@pytest.mark.appworld
def test_pins_hold_everything_that_appworld_needs():
    pins = set(_pins(ROOT / "requirements-appworld.txt"))
    code = """
from importlib import metadata
from packaging.requirements import Requirement
missing, done = [Requirement("appworld")], set()
while missing:
    requirement = missing.pop()
    key = (requirement.name, *sorted(requirement.extras))
    if key not in done:
        done.add(key)
        below = [Requirement(line) for line in metadata.requires(requirement.name) or []]
        extras = [{"extra": extra} for extra in ("", *requirement.extras)]
        missing += [r for r in below if r.marker is None or any(map(r.marker.evaluate, extras))]
print(*(name for name, *_ in done))
"""
    python = os.environ["AGENTGYMS_APPWORLD_PYTHON"]
    found = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    assert {_normal(name) for name in found.stdout.split()} == pins


def test_the_build_backend_is_pinned():
    [backend] = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    pins = _pins(DOCKER / "requirements-build.txt")
    requirement = Requirement(backend)
    assert requirement.specifier.contains(pins[_normal(requirement.name)])
