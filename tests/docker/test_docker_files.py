"""What the container files promise, read from the files alone."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from agentgyms.registration import ENVIRONMENTS

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"
DOCKERFILES = sorted(DOCKER.glob("*.Dockerfile"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
COMPOSE = yaml.safe_load((DOCKER / "compose.yaml").read_text())
SERVICES = list(COMPOSE["services"])
GATES = [name for name in SERVICES if name.endswith("-gate")]
GATED = [name.removesuffix("-gate") for name in GATES]
TMP = "/tmp"


def _instructions(path: Path) -> list[tuple[str, str]]:
    """Return (instruction, arguments) of a Dockerfile, continuation lines joined."""
    lines = [line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    pairs = [line.partition(" ") for line in joined.splitlines() if line.strip()]
    return [(name.upper(), rest.strip()) for name, _, rest in pairs]


def _last_stage(path: Path) -> list[tuple[str, str]]:
    instructions = _instructions(path)
    last = max(i for i, (name, _) in enumerate(instructions) if name == "FROM")
    return instructions[last:]


def _pins(name: str) -> dict[str, str]:
    lines = (DOCKER / name).read_text().splitlines()
    pins = {}
    for line in lines:
        if line and not line.startswith("#"):
            assert re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9A-Za-z.]*", line), f"not pinned: {line}"
            package, _, version = line.partition("==")
            pins[_normal(package)] = version
    return pins


def _normal(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


def test_there_is_a_dockerfile_for_every_service():
    built = {ROOT / service["build"]["dockerfile"] for service in COMPOSE["services"].values()}
    assert built == set(DOCKERFILES)


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_images_are_pinned_and_the_last_one_is_bare(path):
    instructions = _instructions(path)
    defaults = dict(
        rest.split("=", 1) for name, rest in instructions if name == "ARG" and "=" in rest
    )
    bases = [rest.split()[0] for name, rest in instructions if name == "FROM"]
    stages = {rest.split(" AS ")[1] for name, rest in instructions if " AS " in rest}
    assert len(bases) >= 2, "one stage builds, another one runs"
    for base in bases:
        if of_this_file := re.fullmatch(r"(\w+)-\$\{(\w+)\}", base):
            stage, argument = of_this_file.groups()
            assert {f"{stage}-no", f"{stage}-yes"} <= stages
            assert defaults[argument] == "no"
            continue
        image = defaults[base.strip("${}")] if base.startswith("$") else base
        assert re.search(r":\d", image), f"{image} has no version"
        assert "latest" not in image
    assert not [rest for name, rest in _last_stage(path) if name in ("RUN", "ADD")]


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_the_last_stage_is_not_root_and_is_watched(path):
    stage = dict(_last_stage(path))
    assert stage["USER"] == "10001:10001"
    assert "/readyz" in stage["HEALTHCHECK"]
    assert stage["ENTRYPOINT"] == '["python", "-m", "env_servers"]'
    assert stage["CMD"].startswith('["agentgyms/')
    labels = " ".join(rest for name, rest in _last_stage(path) if name == "LABEL")
    for label in ("title", "description", "licenses", "version", "revision"):
        assert f"org.opencontainers.image.{label}=" in labels


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_no_token_is_baked_in(path):
    for name, rest in _instructions(path):
        if name in ("ARG", "ENV", "LABEL", "CMD", "ENTRYPOINT"):
            assert "TOKEN" not in rest.upper()
            assert "--insecure" not in rest


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_what_is_copied_reaches_the_build(path):
    allowed = {
        line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"
    }
    copied = set()
    for name, rest in _instructions(path):
        if name == "COPY" and not rest.startswith("--from"):
            copied |= set(rest.split()[:-1])
    assert copied <= allowed
    assert "*" in (ROOT / ".dockerignore").read_text().splitlines(), "nothing else gets in"


@pytest.mark.parametrize("extra", ["server", "browser"])
def test_pins_hold_everything_that_the_server_needs(extra):
    pins = _pins("requirements-server.txt")
    optional = PROJECT["optional-dependencies"]
    lines = [*PROJECT["dependencies"], *optional["server"], *optional["sotopia"]]
    if extra == "browser":
        pins |= _pins("requirements-browser.txt")
        assert optional["browser"][0] == "agentgyms[server]"
        lines += optional["browser"][1:]
    asked = [Requirement(line) for line in lines]
    missing, done = list(asked), set()
    while missing:
        requirement = missing.pop()
        name = _normal(requirement.name)
        assert name in pins, f"{requirement} is not pinned"
        if name not in done:
            done.add(name)
            below = [Requirement(line) for line in metadata.requires(name) or []]
            extras = [{"extra": extra} for extra in ("", *requirement.extras)]
            missing += [r for r in below if r.marker is None or any(map(r.marker.evaluate, extras))]
    assert done == set(pins), f"nothing needs {sorted(set(pins) - done)}"
    for requirement in asked:
        assert requirement.specifier.contains(pins[_normal(requirement.name)])


@pytest.mark.appworld
def test_pins_hold_everything_that_appworld_needs():
    lines = (ROOT / "requirements-appworld.txt").read_text().splitlines()
    pins = {_normal(line.partition("==")[0]) for line in lines if not line.startswith("#")}
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
    pins = _pins("requirements-build.txt")
    requirement = Requirement(backend)
    assert requirement.specifier.contains(pins[_normal(requirement.name)])


@pytest.mark.parametrize("name", SERVICES)
def test_services_are_confined(name):
    service = COMPOSE["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert service["user"] == "10001:10001"
    assert service["init"] is True
    for limit in ("pids_limit", "mem_limit", "cpus", "stop_grace_period"):
        assert service[limit]
    assert [mount.split(":")[0] for mount in service["tmpfs"]] == [TMP]
    assert {"noexec", "nosuid", "nodev"} <= set(service["tmpfs"][0].split(","))
    assert all(volume.endswith(":ro") for volume in service["volumes"])
    rights = {"privileged", "network_mode", "pid", "ipc", "devices", "cap_add", "extra_hosts"}
    assert set(service) & rights == set()
    assert service["logging"]["options"]["max-size"]
    assert service["restart"] == "unless-stopped"
    probe = "/healthz" if name == "webshop-site" else "/readyz"
    assert probe in service["healthcheck"]["test"][-1]


@pytest.mark.parametrize("name", SERVICES)
def test_services_are_for_this_machine_and_take_a_token(name):
    service = COMPOSE["services"][name]
    assert len(service.get("ports", [])) == (name not in GATED)
    for port in service.get("ports", []):
        assert re.fullmatch(r"127\.0\.0\.1:\$\{\w+:-\d+\}:8000", port)
    asked = {"AGENTGYMS_TOKEN": "${AGENTGYMS_TOKEN:-}"}
    if name == "sotopia":  # for models that are its partner or judge
        asked["OPENAI_API_KEY"] = "${SOTOPIA_API_KEY:-}"
    assert service["environment"] == ({} if name in GATES else asked)
    assert "network_mode" not in service, "the port must be the only way in"


@pytest.mark.parametrize("name", GATED)
def test_what_stands_behind_a_gate_has_no_other_way_out(name):
    service, gate = (COMPOSE["services"][one] for one in (name, f"{name}-gate"))
    assert service["networks"] == [name]
    assert COMPOSE["networks"][name]["internal"] is True
    assert service["dns"] == ["127.0.0.1"]
    assert gate["networks"] == ["default", name]
    assert gate["command"][0] == f"--to={name}:8000"
    assert gate["volumes"] == []
    assert service["depends_on"] == [f"{name}-gate"], "else `up` starts a server without a port"
    assert gate.get("profiles") == service.get("profiles")
    others = [one for one in SERVICES if one not in (name, f"{name}-gate")]
    assert not [one for one in others if name in COMPOSE["services"][one].get("networks", [])]


@pytest.mark.parametrize("name", SERVICES)
def test_images_carry_the_version_of_the_package(name):
    service = COMPOSE["services"][name]
    image = Path(service["build"]["dockerfile"]).name.removesuffix(".Dockerfile")
    arguments = service["build"].get("args", {})
    assert list(arguments.values()) == ["yes"] * len(arguments)
    parts = "".join(f"-{argument.lower()}" for argument in arguments)
    assert service["image"] == f"agentgyms/{image}{parts}:{PROJECT['version']}"
    instructions = _instructions(DOCKER / f"{image}.Dockerfile")
    assert ("ARG", f"VERSION={PROJECT['version']}") in instructions


def test_every_service_serves_an_environment_of_the_package_by_its_name():
    programs = {"webshop-site": "env_servers.webshop_site"}
    programs |= dict.fromkeys(GATES, "env_servers.gate")
    programs |= {"appworld-engine": "env_servers.appworld_engine"}
    for name, service in COMPOSE["services"].items():
        assert service.get("entrypoint", [""])[-1] == programs.get(name, "")
        if name == "webshop-site" or name in GATES:
            continue
        env_id = service["command"][0]
        assert env_id in ENVIRONMENTS
        served = name.removesuffix("-engine").replace("-", "")
        assert env_id.partition("/")[2].lower() == f"{served}-v0"


def test_services_have_ports_of_their_own():
    ports = [COMPOSE["services"][name]["ports"] for name in SERVICES if name not in GATED]
    defaults = re.findall(r":-(\d+)", " ".join(port for [port] in ports))
    assert len(defaults) == len(set(defaults)) == len(SERVICES) - len(GATED)


def test_every_setting_is_explained():
    used = set(re.findall(r"\$\{(\w+)", (DOCKER / "compose.yaml").read_text()))
    example = (DOCKER / ".env.example").read_text()
    explained = set(re.findall(r"^#?([A-Z_]+)=", example, re.MULTILINE))
    assert used == explained
    assert re.search(r"^AGENTGYMS_TOKEN=$", example, re.MULTILINE), "no token is given away"


def test_defaults_of_the_example_are_those_of_the_file():
    defaults = dict(re.findall(r"\$\{(\w+):-([^}]+)\}", (DOCKER / "compose.yaml").read_text()))
    example = dict(re.findall(r"^([A-Z_]+)=(.+)$", (DOCKER / ".env.example").read_text(), re.M))
    assert {k: v for k, v in defaults.items() if k in example} == example


def test_both_generations_of_compose_can_read_the_file():
    text = (DOCKER / "compose.yaml").read_text()
    top: dict[str, Any] = COMPOSE
    assert {key for key in top if not key.startswith("x-")} == {"services", "networks", "volumes"}
    for newer in ("include:", "develop:", "!reset", "!override", "required:", "deploy:"):
        assert newer not in text
