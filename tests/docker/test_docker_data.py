"""Official data in the servers' volume, and two replicas behind one client."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
import requests
from containers import Project, Running, docker, inside, project
from ports import free_port

import agentgyms

pytestmark = pytest.mark.docker

ALFWORLD = "agentgyms/ALFWorld-v0"
FILES = {
    "alfworld": "alfworld_text_3827.tar.xz",
    "webshop": "items_shuffle_1000.json",
    "sotopia": "environments.json",
}
KNOBS = {f"{name.upper()}_SOURCE": "official" for name in FILES} | {
    "SOTOPIA_SPLIT": "all",
    "SOTOPIA_PARTNER": "self",
    "SOTOPIA_JUDGE": "nobody@http://127.0.0.1:9/v1",
}


@pytest.fixture(scope="module")
def official(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """Servers of official tasks, which came into the volume by the service `data`."""
    given = Path(os.environ.get("AGENTGYMS_TEST_DATA") or "/none")
    if missing := [f"{n}/{file}" for n, file in FILES.items() if not (given / n / file).is_file()]:
        pytest.skip(f"AGENTGYMS_TEST_DATA names no folder with {', '.join(missing)}")
    with project(tmp_path_factory.mktemp("data"), KNOBS) as made:
        made.build(["data"])
        for name, file in FILES.items():
            path = "/import" if name == "sotopia" else f"/import/{file}"
            mount = f"{given / name}:/import:ro"
            made.run("run", "--rm", "-v", mount, "data", "import", name, path)
        made.up(list(FILES))
        yield made


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[list[Running]]:
    """Two servers of generated tasks, at ports in a row."""
    first = free_port(2)
    with project(tmp_path, {"ALFWORLD_PORT": f"{first}-{first + 1}"}) as made:
        made.up(["alfworld"], "--scale", "alfworld=2")
        found = made.running("alfworld")
        assert {one.url for one in found} == {f"http://127.0.0.1:{first + i}" for i in (0, 1)}
        yield found


def test_all_of_the_release_is_in_the_volume(official):
    assert official.run("run", "--rm", "data", "verify", "alfworld").splitlines()[-1] == (
        "train 3553, valid_seen 140, valid_unseen 134 in /data/alfworld"
    )


@pytest.mark.parametrize("env_id", [ALFWORLD, "agentgyms/WebShop-v0"])
def test_official_tasks_are_solved_there(official, env_id):
    [running] = official.running(env_id.partition("/")[2].removesuffix("-v0").lower())
    env = gym.make(env_id, oracle=True, **running.there())
    assert "generated" not in env.unwrapped.data_version
    solved = []
    for seed in range(3):
        _, info = env.reset(seed=seed)
        over = False
        while not over:
            _, _, terminated, truncated, info = env.step(json.loads(info["oracle"])["best"])
            over = terminated or truncated
        solved.append(info["success"])  # the expert of WebShop is not perfect
    env.close()
    assert sum(solved) >= 2


def test_official_dialogues_are_those_of_the_files(official):
    [running] = official.running("sotopia")
    here = {"source": "official", "split": "all", "partner": "self"}
    here |= {"judge": KNOBS["SOTOPIA_JUDGE"]}
    path = Path(os.environ["AGENTGYMS_TEST_DATA"], "sotopia")
    local = gym.make("agentgyms/SOTOPIA-v0", data_path=path, **here)
    remote = gym.make("agentgyms/SOTOPIA-v0", **running.there())
    assert _plain(remote.reset(seed=4)) == _plain(local.reset(seed=4))
    for action in ("speak: good morning", "nonverbal: nods", "act: sits down"):
        assert _plain(remote.step(action)) == _plain(local.step(action))
    remote.close()


def _plain(result: Any) -> str:
    return json.dumps(result)  # in which nan is equal to nan


def test_servers_cannot_write_where_the_data_are(official):
    program = (
        "import pathlib\n"
        "for folder in ('/data', '/data/{name}'):\n"
        "    try:\n"
        "        pathlib.Path(folder, 'x').touch()\n"
        "    except OSError as e:\n"
        "        print(e.strerror)\n"
    )
    for name in FILES:
        [running] = official.running(name)
        said = inside(running.name, program.replace("{name}", name))
        assert said.splitlines() == ["Read-only file system"] * 2


def test_two_replicas_serve_one_client_and_one_outlives_the_other(replicas):
    there = {"url": [one.url for one in replicas], "token": replicas[0].token}
    pairs = [(gym.make(ALFWORLD), gym.make(ALFWORLD, **there)) for _ in range(6)]
    for seed, (local, remote) in enumerate(pairs):
        assert remote.reset(seed=seed) == local.reset(seed=seed)
    assert sorted(_sessions(one) for one in replicas) == [3, 3]
    for local, remote in pairs:
        action = agentgyms.expert(local)()
        assert remote.step(action) == local.step(action)
    docker("kill", "--signal", "KILL", replicas[0].name)
    for local, remote in pairs:
        act, over = agentgyms.expert(local), False
        while not over:
            action = act()
            result = local.step(action)
            assert remote.step(action) == result
            over = result[2] or result[3]
        assert result[4]["success"]
    assert _sessions(replicas[1]) == 6
    for _, remote in pairs:
        remote.close()


def _sessions(running: Running) -> int:
    text = requests.get(f"{running.url}/metrics", timeout=60).text
    [line] = [line for line in text.splitlines() if line.startswith("agentgyms_sessions ")]
    return int(float(line.split()[1]))
