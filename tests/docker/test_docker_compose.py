"""The real thing: the image is built, comes up confined, and plays as the environment here."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import pytest
import requests
import yaml

import agentgyms
from agentgyms import testing
from agentgyms.errors import Unauthorized

pytestmark = pytest.mark.docker

DOCKER = Path(__file__).parents[2] / "docker"
ALFWORLD = "agentgyms/ALFWorld-v0"
COMPOSE = yaml.safe_load((DOCKER / "compose.yaml").read_text())
SERVICES = list(COMPOSE["services"])
SITE, BROWSER = "webshop-site", "webshop-browser"
BROWSER_ID = "agentgyms/WebShopBrowser-v0"
ENV_IDS = [COMPOSE["services"][name]["command"][0] for name in SERVICES if name != SITE]
ENV_IDS.remove(BROWSER_ID)


class Running(NamedTuple):
    """A container that compose has brought up."""

    name: str
    url: str
    token: str

    def there(self) -> dict[str, str]:
        return {"url": self.url, "token": self.token}


def _docker(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["docker", *arguments], capture_output=True, text=True, check=check, timeout=300
    )


def _compose_command() -> list[str]:
    if _docker("compose", "version", check=False).returncode == 0:
        return ["docker", "compose"]
    if shutil.which("docker-compose"):
        return ["docker-compose"]
    pytest.skip("there is no compose")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Running]]:
    """All services of the file, by the id of their environment."""
    if not shutil.which("docker") or _docker("info", check=False).returncode:
        pytest.skip("no Docker engine answers")
    tag = f"agentgyms-test-{os.getpid()}"
    override = tmp_path_factory.mktemp("compose") / "override.yaml"
    # The build uses this machine's network, which may be the only one with a package index.
    changes = {name: {"image": tag, "build": {"network": "host"}} for name in SERVICES}
    changes[BROWSER]["image"] = f"{tag}-browser"
    override.write_text(yaml.safe_dump({"services": changes}))
    ports, token = {name: _free_port() for name in SERVICES}, secrets.token_urlsafe(32)
    environment = os.environ | {"AGENTGYMS_TOKEN": token}
    environment |= {_port_variable(name): str(port) for name, port in ports.items()}
    files = ["-f", str(DOCKER / "compose.yaml"), "-f", str(override)]
    compose = [*_compose_command(), "-p", tag, *files]

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [*compose, *arguments], env=environment, capture_output=True, text=True, timeout=900
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        return done.stdout.strip()

    try:
        run("build", SERVICES[0], BROWSER)  # all are of these two images
        run("--profile", "browser", "up", "-d")
        found = {
            (SITE if name == SITE else COMPOSE["services"][name]["command"][0]): Running(
                run("ps", "-q", name), f"http://127.0.0.1:{port}", token
            )
            for name, port in ports.items()
        }
        for one in found.values():
            _until(lambda name=one.name: _health(name) == "healthy", 90)
        yield found
    finally:
        run("--profile", "browser", "down", "-v")
        _docker("rmi", "-f", tag, f"{tag}-browser", check=False)


def _port_variable(name: str) -> str:
    return f"{name.replace('-', '_').upper()}_PORT"


@pytest.fixture(scope="module")
def running(services: dict[str, Running]) -> Running:
    return services[ALFWORLD]


def _health(name: str) -> str:
    return str(_inspect(name)["State"]["Health"]["Status"])


def _inspect(name: str) -> dict[str, Any]:
    [found] = json.loads(_docker("inspect", name).stdout)
    return dict(found)


def _until(condition: Any, limit_s: float) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.2)


def _inside(running: Running, program: str) -> str:
    return _docker("exec", running.name, "python", "-c", program).stdout


@pytest.mark.parametrize("env_id", ENV_IDS)
def test_it_plays_as_the_local_environment_does(services, env_id):
    there = services[env_id].there()
    testing.check_remote_parity(lambda: gym.make(env_id), lambda: gym.make(env_id, **there))


def test_the_browser_there_plays_as_the_text_environment_here_does(services):
    there = services[BROWSER_ID].there()
    local, remote = gym.make("agentgyms/WebShop-v0"), gym.make(BROWSER_ID, **there)
    result: Any = local.reset(seed=3)
    assert _plain(remote.reset(seed=3)) == _plain(result)
    act, over = agentgyms.expert(local), False
    while not over:
        action = act()
        result = local.step(action)
        assert _plain(remote.step(action)) == _plain(result)
        over = result[2]
    assert result[4]["success"]
    remote.close()


def _plain(result: Any) -> str:
    return json.dumps(result)  # in which nan is equal to nan


def test_the_shop_is_open_for_people(services):
    site = services[SITE]
    assert requests.get(site.url, timeout=5).status_code == 401
    with requests.Session() as person:
        person.post(f"{site.url}/access", data={"token": site.token}, timeout=5)
        page = person.get(site.url, timeout=5)
        assert (page.status_code, "Your task" in page.text) == (200, True)
        results = person.post(page.url, data={"query": "cereal"}, timeout=5)
    assert "B0GEN" in results.text
    assert requests.get(results.url, timeout=5).status_code == 401


def test_it_solves_a_task_there(running):
    env = gym.make(ALFWORLD, oracle=True, split="valid_unseen", **running.there())
    _, info = env.reset(seed=5)
    terminated = False
    while not terminated:
        action = json.loads(info["oracle"])["best"]
        _, reward, terminated, truncated, info = env.step(action)
        assert not truncated
    assert (reward, info["success"]) == (1.0, True)
    env.close()


def test_it_runs_without_rights(running):
    program = (
        "import os, pathlib\n"
        "status = dict(l.split(':\\t', 1) for l in open('/proc/self/status') if ':\\t' in l)\n"
        "print(os.getuid(), os.getgid(), status['CapEff'].strip(), status['CapBnd'].strip(),\n"
        "      status['NoNewPrivs'].strip())\n"
        "for folder in ('/', '/data', '/opt/agentgyms', '/etc', '/usr/local/bin'):\n"
        "    try:\n"
        "        pathlib.Path(folder, 'x').touch()\n"
        "    except OSError as e:\n"
        "        print(folder, e.strerror)\n"
        "pathlib.Path('/tmp/x').touch()\n"
    )
    first, *folders = _inside(running, program).splitlines()
    nothing = "0" * 16
    assert first == f"10001 10001 {nothing} {nothing} 1"
    assert folders == [
        f"{folder} Read-only file system"
        for folder in ("/", "/data", "/opt/agentgyms", "/etc", "/usr/local/bin")
    ]


def test_its_limits_hold(running):
    host = _inspect(running.name)["HostConfig"]
    assert host["ReadonlyRootfs"] is True
    assert host["CapDrop"] == ["ALL"]
    assert host["PidsLimit"] == 256
    assert host["Memory"] == 2 * 2**30
    assert host["NanoCpus"] == 2_000_000_000
    [[binding]] = host["PortBindings"].values()
    assert binding["HostIp"] == "127.0.0.1"


def test_no_secret_is_in_the_image(running):
    image = _inspect(running.name)["Image"]
    assert running.token not in _docker("image", "inspect", image).stdout
    assert running.token not in _docker("history", "--no-trunc", image).stdout


def test_it_wants_its_token(running):
    with pytest.raises(Unauthorized):
        gym.make(ALFWORLD, url=running.url, token="wrong")
    assert requests.get(f"{running.url}/v1/info", timeout=5).status_code == 401
    assert requests.get(f"{running.url}/metrics", timeout=5).status_code == 200
    assert (
        "/v1/batch/step" in requests.get(f"{running.url}/openapi.json", timeout=5).json()["paths"]
    )


def test_without_a_token_it_does_not_start(running):
    image = _inspect(running.name)["Image"]
    done = _docker("run", "--rm", image, check=False)
    assert done.returncode == 2
    assert "AGENTGYMS_TOKEN" in done.stderr


def test_an_episode_survives_the_death_of_its_server(running):
    local, remote = gym.make(ALFWORLD), gym.make(ALFWORLD, **running.there())
    assert local.reset(seed=11) == remote.reset(seed=11)
    _, info = local.reset(seed=11)
    remote.reset(seed=11)
    for turn in range(8):
        if turn == 4:
            _kill_the_server(running)
        action = info["admissible_actions"][turn % len(info["admissible_actions"])]
        result = local.step(action)
        assert tuple(remote.step(action)) == result
        info = result[4]
    assert _inspect(running.name)["RestartCount"] == 1
    assert local.unwrapped.snapshot() == remote.unwrapped.snapshot()
    remote.close()


def _kill_the_server(running: Running) -> None:
    program = (
        "import os, pathlib, signal\n"
        "for path in pathlib.Path('/proc').glob('[0-9]*/cmdline'):\n"
        "    if b'env_servers' in path.read_bytes() and path.parts[2] != '1':\n"
        "        os.kill(int(path.parts[2]), signal.SIGKILL)\n"
    )
    _docker("exec", running.name, "python", "-c", program, check=False)


def test_it_stops_when_it_is_told_to(running):
    started = time.monotonic()
    _docker("stop", "-t", "15", running.name)
    assert time.monotonic() - started < 8
    assert _inspect(running.name)["State"]["ExitCode"] == 0
    _docker("start", running.name)
    _until(lambda: _health(running.name) == "healthy", 60)
