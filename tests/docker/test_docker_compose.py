"""The real thing: the image is built, comes up confined, and plays as the environment here."""

from __future__ import annotations

import json
import re
import time
from typing import Any
from urllib.parse import urljoin

import gymnasium as gym
import pytest
import requests
from containers import (
    GAMES,
    GATES,
    OTHERS,
    SERVICES,
    Running,
    Usual,
    docker,
    inside,
    inspect,
    until,
)

import agentgyms
from agentgyms import testing
from agentgyms.core.errors import Unauthorized

pytestmark = pytest.mark.docker

ALFWORLD = "agentgyms/ALFWorld-v0"
BROWSER_ID = "agentgyms/WebShopBrowser-v0"
SERVED = [name for name in SERVICES if name not in (*GATES, *OTHERS, *GAMES, "webshop-site")]
PLAYED = [name for name in SERVED if name != "webshop-browser"]
PORTS = {
    "alfworld": "8001",
    "webshop": "8002",
    "sokoban": "8003",
    "appworld-gate": "8004",
    "sotopia": "8005",
    "searchqa": "8006",
}


@pytest.fixture(scope="module")
def running(services: dict[str, Running]) -> Running:
    return services["alfworld"]


def test_up_alone_brings_six_environments_up_at_little_cost(usual: Usual):
    assert usual.started.keys() == usual.cost.keys() == {*PORTS, "appworld"}
    assert max(usual.cost.values()) < 10, usual.cost
    for name, port in PORTS.items():
        [container] = usual.started[name]
        [[binding]] = inspect(container)["NetworkSettings"]["Ports"].values()
        assert binding["HostIp"] == "127.0.0.1"
        assert binding["HostPort"] == port or not usual.ports


@pytest.mark.parametrize("name", [*PLAYED, *GAMES])
def test_it_plays_as_the_local_environment_does(services, name):
    env_id, there = SERVICES[name]["command"][0], services[name].there()
    testing.check_remote_parity(lambda: gym.make(env_id), lambda: gym.make(env_id, **there))


def test_the_browser_there_plays_as_the_text_environment_here_does(services):
    there = services["webshop-browser"].there()
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


@pytest.mark.parametrize("name", SERVED)
def test_people_play_there_with_the_token(services, name):
    running = services[name]
    page = f"{running.url}/play"
    assert requests.get(page, timeout=60).status_code == 401
    with requests.Session() as person:
        asked = person.post(page, data={"token": running.token}, timeout=60)
        assert (asked.status_code, asked.headers["Content-Type"]) == (
            200,
            "text/html; charset=utf-8",
        )
        for part in re.findall(r'(?:src|href)="(/?[^":]+\.(?:js|css|svg))"', asked.text):
            assert person.get(urljoin(page, part), timeout=60).status_code == 200, part


@pytest.mark.parametrize("name", PLAYED)
def test_logs_are_lines_of_json_that_tell_no_secrets(services, name):
    running = services[name]
    gym.make(SERVICES[name]["command"][0], **running.there()).close()
    for container in filter(None, (running.name, running.gate)):
        done = docker("logs", container)
        lines = [json.loads(line) for line in done.stderr.splitlines()]
        assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)
        assert container == running.gate or "/v1/info" in {line.get("route") for line in lines}
        greetings = [line.rpartition(" at ")[2] for line in done.stdout.splitlines()]
        assert all(re.fullmatch(r"(http://)?0\.0\.0\.0:8000", one) for one in greetings)
        assert running.token not in done.stdout + done.stderr


def test_the_shop_is_open_for_people(services):
    site = services["webshop-site"]
    assert requests.get(site.url, timeout=60).status_code == 401
    with requests.Session() as person:
        person.post(f"{site.url}/access", data={"token": site.token}, timeout=60)
        page = person.get(site.url, timeout=60)
        assert (page.status_code, "Your task" in page.text) == (200, True)
        results = person.post(page.url, data={"query": "cereal"}, timeout=60)
    assert "B0GEN" in results.text
    assert requests.get(results.url, timeout=60).status_code == 401


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
    first, *folders = inside(running.name, program).splitlines()
    nothing = "0" * 16
    assert first == f"10001 10001 {nothing} {nothing} 1"
    assert folders == [
        f"{folder} Read-only file system"
        for folder in ("/", "/data", "/opt/agentgyms", "/etc", "/usr/local/bin")
    ]


def test_its_limits_hold(running):
    host = inspect(running.name)["HostConfig"]
    assert host["ReadonlyRootfs"] is True
    assert host["CapDrop"] == ["ALL"]
    assert host["PidsLimit"] == 256
    assert host["Memory"] == 2 * 2**30
    assert host["NanoCpus"] == 2_000_000_000
    [[binding]] = host["PortBindings"].values()
    assert binding["HostIp"] == "127.0.0.1"


def test_no_secret_is_in_the_image(running):
    image = inspect(running.name)["Image"]
    assert running.token not in docker("image", "inspect", image).stdout
    assert running.token not in docker("history", "--no-trunc", image).stdout


def test_it_wants_its_token(running):
    with pytest.raises(Unauthorized):
        gym.make(ALFWORLD, url=running.url, token="wrong")
    assert requests.get(f"{running.url}/v1/info", timeout=60).status_code == 401
    assert requests.get(f"{running.url}/metrics", timeout=60).status_code == 200
    assert (
        "/v1/batch/step" in requests.get(f"{running.url}/openapi.json", timeout=60).json()["paths"]
    )


def test_without_a_token_it_does_not_start(running):
    image = inspect(running.name)["Image"]
    done = docker("run", "--rm", image, check=False)
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
    assert inspect(running.name)["RestartCount"] == 1
    assert local.unwrapped.snapshot() == remote.unwrapped.snapshot()
    remote.close()


def _kill_the_server(running: Running) -> None:
    program = (
        "import os, pathlib, signal\n"
        "for path in pathlib.Path('/proc').glob('[0-9]*/cmdline'):\n"
        "    if b'env_servers' in path.read_bytes() and path.parts[2] != '1':\n"
        "        os.kill(int(path.parts[2]), signal.SIGKILL)\n"
    )
    docker("exec", running.name, "python", "-c", program, check=False)


def test_all_stop_when_they_are_told_to(services):
    names = [running.name for running in services.values()]
    started = time.monotonic()
    docker("stop", "-t", "15", *names)
    assert time.monotonic() - started < 15
    assert {inspect(name)["State"]["ExitCode"] for name in names} == {0}
    docker("start", *names)
    until(lambda: all(_answers(running.url) for running in services.values()), 90)


def _answers(url: str) -> bool:
    try:
        return requests.get(f"{url}/healthz", timeout=60).ok
    except requests.RequestException:
        return False
