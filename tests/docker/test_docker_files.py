"""What the container files promise, read from the files alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from dockerfiles import DOCKER, DOCKERFILES, PROJECT, ROOT, instructions, last_stage

from agentgyms.registration import ENVIRONMENTS

COMPOSE = yaml.safe_load((DOCKER / "compose.yaml").read_text())
SERVICES = list(COMPOSE["services"])
GATES = [name for name in SERVICES if name.endswith("-gate")]
GATED = [name.removesuffix("-gate") for name in GATES]
SERVERS = [name for name in SERVICES if name != "data"]
SIX = {"alfworld": 8001, "webshop": 8002, "sokoban": 8003, "appworld": 8004, "sotopia": 8005}
SIX |= {"searchqa": 8006}
GAMES = {
    one.partition("/")[2].removesuffix("-v0").lower()
    for one, where in ENVIRONMENTS.items()
    if ".envs.games." in where
}
LOG = {
    "AGENTGYMS_LOG_FORMAT": "${SERVER_LOG_FORMAT:-json}",
    "AGENTGYMS_LOG_LEVEL": "${SERVER_LOG_LEVEL:-info}",
}
TMP = "/tmp"


def test_there_is_a_dockerfile_for_every_service():
    built = {ROOT / service["build"]["dockerfile"] for service in COMPOSE["services"].values()}
    assert built == set(DOCKERFILES)


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_images_are_pinned_and_the_last_one_is_bare(path):
    found = instructions(path)
    defaults = dict(rest.split("=", 1) for name, rest in found if name == "ARG" and "=" in rest)
    bases = [rest.split()[0] for name, rest in found if name == "FROM"]
    stages = {rest.split(" AS ")[1] for name, rest in found if " AS " in rest}
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
    assert not [rest for name, rest in last_stage(path) if name in ("RUN", "ADD")]


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_the_last_stage_is_not_root_and_is_watched(path):
    stage = dict(last_stage(path))
    assert stage["USER"] == "10001:10001"
    assert "/readyz" in stage["HEALTHCHECK"]
    assert stage["ENTRYPOINT"] == '["python", "-m", "env_servers"]'
    assert stage["CMD"].startswith('["agentgyms/')
    labels = " ".join(rest for name, rest in last_stage(path) if name == "LABEL")
    for label in ("title", "description", "licenses", "version", "revision"):
        assert f"org.opencontainers.image.{label}=" in labels


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_no_token_is_baked_in(path):
    for name, rest in instructions(path):
        if name in ("ARG", "ENV", "LABEL", "CMD", "ENTRYPOINT"):
            assert "TOKEN" not in rest.upper()
            assert "--insecure" not in rest


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_what_is_copied_reaches_the_build(path):
    allowed = {
        line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"
    }
    copied = set()
    for name, rest in instructions(path):
        if name == "COPY" and not rest.startswith("--from"):
            copied |= set(rest.split()[:-1])
    assert copied <= allowed
    assert "*" in (ROOT / ".dockerignore").read_text().splitlines(), "nothing else gets in"


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
    rights = {"privileged", "network_mode", "pid", "ipc", "devices", "cap_add", "extra_hosts"}
    assert set(service) & rights == set()
    assert service["logging"]["options"]["max-size"]


@pytest.mark.parametrize("name", SERVERS)
def test_servers_are_watched_and_only_read_data(name):
    service = COMPOSE["services"][name]
    assert service["restart"] == "unless-stopped"
    probe = "/healthz" if name == "webshop-site" else "/readyz"
    assert probe in service["healthcheck"]["test"][-1]
    assert service["volumes"] == (
        [] if name in GATES else ["${SERVER_DATA:-agentgyms-data}:/data:ro"]
    )


def test_one_service_writes_data_once_and_serves_nobody():
    service = COMPOSE["services"]["data"]
    assert service["volumes"] == ["${SERVER_DATA:-agentgyms-data}:/data"]
    assert service["entrypoint"] == ["agentgyms", "data"]
    assert service["restart"] == "no"
    assert service["environment"] == LOG, "it needs no token"
    assert service["healthcheck"] == {"disable": True}
    assert not {"ports", "networks", "depends_on"} & set(service)


def test_an_empty_volume_belongs_to_the_user_of_the_images():
    for path in DOCKERFILES:
        assert ("COPY", "--from=build --chown=10001:10001 /data /data") in last_stage(path)


def test_up_starts_the_six_and_others_have_profiles_of_their_own_or_are_games():
    assert set(SERVICES) >= GAMES
    for name in SERVICES:
        server = name.removesuffix("-gate")
        expected = None if server in SIX else ["games" if server in GAMES else server]
        assert COMPOSE["services"][name].get("profiles") == expected
        if expected is None and (name in GATES or name not in GATED):
            [port] = COMPOSE["services"][name]["ports"]
            assert f":-{SIX[server]}}}:8000" in port


@pytest.mark.parametrize("name", SERVERS)
def test_services_are_for_this_machine_and_take_a_token(name):
    service = COMPOSE["services"][name]
    assert len(service.get("ports", [])) == (name not in GATED)
    for port in service.get("ports", []):
        assert re.fullmatch(r"127\.0\.0\.1:\$\{\w+:-\d+\}:8000", port)
    asked = dict(LOG)
    if name not in GATES:
        asked["AGENTGYMS_TOKEN"] = "${AGENTGYMS_TOKEN:-}"
        asked["AGENTGYMS_ALLOWED_HOSTS"] = "${AGENTGYMS_ALLOWED_HOSTS:-}"
    if name == "sotopia":  # for models that are its partner or judge
        asked["OPENAI_API_KEY"] = "${SOTOPIA_API_KEY:-}"
    assert service["environment"] == asked
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
    arguments = dict(service["build"]["args"])
    assert arguments.pop("PYTHON_IMAGE") == "${PYTHON_IMAGE:-python:3.11-slim-bookworm}"
    assert arguments.pop("REVISION") == "${REVISION:-unknown}"
    assert list(arguments.values()) == ["yes"] * len(arguments)
    parts = "".join(f"-{argument.lower()}" for argument in arguments)
    assert service["image"] == f"agentgyms/{image}{parts}:{PROJECT['version']}"
    found = instructions(DOCKER / f"{image}.Dockerfile")
    assert ("ARG", f"VERSION={PROJECT['version']}") in found
    assert ("ARG", "PYTHON_IMAGE=python:3.11-slim-bookworm") in found


def test_every_service_serves_an_environment_of_the_package_by_its_name():
    programs = {"webshop-site": "env_servers.webshop_site"}
    programs |= dict.fromkeys(GATES, "env_servers.gate")
    programs |= {"appworld-engine": "env_servers.appworld_engine", "data": "data"}
    for name, service in COMPOSE["services"].items():
        assert service.get("entrypoint", [""])[-1] == programs.get(name, "")
        if name in ("webshop-site", "data", *GATES):
            continue
        env_id = service["command"][0]
        assert env_id in ENVIRONMENTS
        served = name.removesuffix("-engine").replace("-", "")
        assert env_id.partition("/")[2].lower() == f"{served}-v0"


def test_services_have_ports_of_their_own():
    ports = [COMPOSE["services"][name]["ports"] for name in SERVERS if name not in GATED]
    defaults = re.findall(r":-(\d+)", " ".join(port for [port] in ports))
    assert len(defaults) == len(set(defaults)) == len(SERVERS) - len(GATED)


def test_every_setting_is_explained():
    used = set(re.findall(r"\$\{(\w+)", (DOCKER / "compose.yaml").read_text()))
    example = (DOCKER / ".env.example").read_text()
    explained = set(re.findall(r"^#?([A-Z0-9_]+)=", example, re.MULTILINE))
    assert explained - used == {"COMPOSE_PROJECT_NAME", "COMPOSE_PROFILES"}, "compose's own"
    assert used <= explained
    assert re.search(r"^AGENTGYMS_TOKEN=$", example, re.MULTILINE), "no token is given away"


def test_defaults_of_the_example_are_those_of_the_file():
    defaults = dict(re.findall(r"\$\{(\w+):-([^}]+)\}", (DOCKER / "compose.yaml").read_text()))
    example = dict(re.findall(r"^([A-Z0-9_]+)=(.+)$", (DOCKER / ".env.example").read_text(), re.M))
    own = {"COMPOSE_PROJECT_NAME": "agentgyms"}
    assert {k: v for k, v in defaults.items() if k in example} | own == example
    for path in DOCKERFILES:
        given = [rest for name, rest in instructions(path) if name == "ARG"]
        assert {f"{k}={defaults[k]}" for k in ("PYTHON_IMAGE", "REVISION")} <= set(given)


def test_both_generations_of_compose_can_read_the_file():
    text = (DOCKER / "compose.yaml").read_text()
    top: dict[str, Any] = COMPOSE
    assert {key for key in top if not key.startswith("x-")} == {"services", "networks", "volumes"}
    for newer in ("include:", "develop:", "!reset", "!override", "required:", "deploy:"):
        assert newer not in text
