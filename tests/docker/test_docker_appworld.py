"""AppWorld's containers: they play through their gates, and there is no other way in or out."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import gymnasium as gym
import pytest
import requests
from containers import SERVICES, Running, docker, inside, inspect, project, until

import agentgyms
from agentgyms import testing

pytestmark = pytest.mark.docker

ENV_ID = "agentgyms/AppWorld-v0"
ATTACKS = Path(__file__).parents[1] / "agentgyms/envs/appworld" / "test_appworld_attacks.py"
PACKED = "/opt/appworld/lib/python3.11/site-packages/appworld"
FEW = ("appworld's own loader", "pathlib", "open", "subclasses", "environment", "network", "exit")
"""Attacks on the server of the engine, whose code runs behind the same walls."""

UNWRITABLE = (
    *(f"kept = 1\nprint(f\"{{'{blank}'}}\")" for blank in "\xa0\u200b\xad\u200f"),
    f"kept = 0x{'f' * 4000}",
)
"""Code that Python runs, and that `ast.unparse` refuses."""

REACH = """
import json, os, pathlib, socket, sys
from concurrent.futures import ThreadPoolExecutor

def tried(address):
    with socket.socket() as link:
        link.settimeout(2)
        try:
            link.connect(tuple(address))
        except OSError as e:
            return type(e).__name__
        return "connected"

def known(name):
    os.environ["RES_OPTIONS"] = "timeout:2 attempts:1"
    try:
        return socket.gethostbyname(name)
    except OSError as e:
        return type(e).__name__

addresses, names = json.loads(sys.argv[1])
lines = pathlib.Path("/proc/net/if_inet6").read_text().split("\\n")
print(json.dumps([
    list(ThreadPoolExecutor(32).map(tried, addresses)),
    [known(name) for name in names],
    [line for line in lines if line and not line.endswith(" lo")],
]))
"""

BOMB = """
import os, signal, time
children = []
while len(children) < 5000:
    try:
        pid = os.fork()
    except OSError as e:
        break
    if pid == 0:
        time.sleep(60)
        os._exit(0)
    children.append(pid)
time.sleep(1)
for pid in children:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
print(len(children))
"""


UNCHECKED = """
import json, os, pathlib, sys
from agentgyms.envs.appworld.sandbox import code_check, executors
from agentgyms.envs.appworld.env import AppWorldEnv

outputs = []
run = executors.Executor.run

def told(*args, **kwargs):
    outputs.append(run(*args, **kwargs))
    return outputs[-1]

executors.Executor.run = told
executors.GRACE_S = 0.3
code_check.refusal = lambda code: None
pathlib.Path("/tmp/secret").write_text(os.environ["AGENTGYMS_TOKEN"])
env, found = AppWorldEnv(timeout_s=0.5, max_api_calls=50), {}
for name, code in json.load(sys.stdin).items():
    env.reset(seed=1)
    outputs.clear()
    text, *_, info = env.step(code)
    said = text + info["feedback_text"] + "".join(one.output for one in outputs)
    assert not info["success"] and not os.path.exists("/tmp/written"), name
    env.reset(seed=1)
    found[name] = [said, env.step("print(6 * 7)")[0]]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def mini(services: dict[str, Running]) -> Running:
    return services["appworld"]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with project(tmp_path_factory.mktemp("compose")) as made:
        made.up(["appworld-engine"])
        yield made.running("appworld-engine")[0]


@pytest.fixture(params=["mini", "engine"])
def running(request: pytest.FixtureRequest) -> Running:
    """Each of the two."""
    return request.getfixturevalue(request.param)


def play_expert(running: Running, seed: int) -> bool:
    env = gym.make(ENV_ID, oracle=True, split="train", **running.there())
    _, info = env.reset(seed=seed)
    over = False
    while not over:
        _, _, terminated, truncated, info = env.step(json.loads(info["oracle"])["best"])
        over = terminated or truncated
    env.close()
    return bool(info["success"])


def test_it_solves_tasks_there(running):
    assert all(play_expert(running, seed) for seed in range(3))


def test_code_that_cannot_be_written_again_is_a_turn_like_others(running):
    with closing(gym.make(ENV_ID, **running.there())) as env:
        env.reset(seed=1)
        for code in UNWRITABLE:
            *_, info = env.step(code)
            assert (info["feedback"], info["action_key"]) == ("ok", code)
            assert env.step("print(kept > 0)\ndel kept")[0] == "True\n"


@pytest.mark.appworld
def test_the_engine_there_plays_as_the_engine_here(engine):
    testing.check_remote_parity(
        lambda: gym.make(ENV_ID, engine="appworld"),
        lambda: gym.make(ENV_ID, engine="appworld", **engine.there()),
    )


def test_nothing_can_be_reached_from_there(running):
    networks = inspect(running.name)["NetworkSettings"]["Networks"]
    [inner] = networks.values()
    gateways = [n["Gateway"] for n in inspect(running.gate)["NetworkSettings"]["Networks"].values()]
    hosts = ["1.1.1.1", "192.0.2.1", "172.17.0.1", inner["Gateway"], *gateways]
    addresses = [[host, port] for host in hosts if host for port in (22, 53, 80)]
    asked = json.dumps([addresses, ["pypi.org", "localhost"]])
    done = docker("exec", running.name, "python", "-c", REACH, asked)
    reached, named, ipv6 = json.loads(done.stdout)
    assert set(reached) <= {"TimeoutError", "OSError", "ConnectionRefusedError"}
    assert named == ["gaierror", "127.0.0.1"]
    assert ipv6 == []


def test_the_gate_is_the_only_way_in(running):
    assert inspect(running.name)["HostConfig"]["PortBindings"] in ({}, None)
    [[binding]] = inspect(running.gate)["HostConfig"]["PortBindings"].values()
    assert binding["HostIp"] == "127.0.0.1"
    assert requests.get(f"{running.url}/v1/info", timeout=60).status_code == 401
    [inner] = inspect(running.name)["NetworkSettings"]["Networks"].values()
    assert _ready(running.url)
    assert not _ready(f"http://{inner['IPAddress']}:8000"), "this machine has no way in"


def test_the_gate_knows_no_token_and_reads_no_data(running):
    gate = inspect(running.gate)
    assert running.token not in json.dumps(gate)
    assert gate["Mounts"] == []


@pytest.mark.parametrize("part", ["name", "gate"])
def test_it_runs_without_rights(running, part):
    program = (
        "import os, pathlib\n"
        "status = dict(l.split(':\\t', 1) for l in open('/proc/self/status') if ':\\t' in l)\n"
        "print(os.getuid(), os.getgid(), status['CapEff'].strip(), status['CapBnd'].strip(),\n"
        "      status['NoNewPrivs'].strip())\n"
        "for folder in ('/', '/data', '/opt/agentgyms', '/opt/appworld', '/etc'):\n"
        "    try:\n"
        "        pathlib.Path(folder, 'x').touch()\n"
        "    except OSError as e:\n"
        "        print(e.strerror)\n"
    )
    first, *folders = inside(getattr(running, part), program).splitlines()
    nothing = "0" * 16
    assert first == f"10001 10001 {nothing} {nothing} 1"
    assert folders == ["Read-only file system"] * 5


def test_the_code_of_agents_is_confined_by_the_kernel_there(running):
    kind = "appworld" if "appworld-engine" in inspect(running.name)["Name"] else "mini"
    program = (
        "import json, os\n"
        "from agentgyms.envs.appworld.sandbox import executors\n"
        "os.environ['AGENTGYMS_APPWORLD_PYTHON'] = '/tmp/appworld-engine/bin/python'\n"
        f"print(json.dumps(executors.confinement({kind!r})))\n"
    )
    found = json.loads(inside(running.name, program))
    assert found["missing"] == []
    assert found["landlock"] >= 1
    assert found["seccomp"] is True


@pytest.mark.parametrize(("name", "attacks"), [("mini", None), ("engine", FEW)])
def test_attacks_through_its_server_fail(request, name, attacks):
    running = request.getfixturevalue(name)
    test = f"{ATTACKS}::test_attack"
    asked = [test] if attacks is None else [f"{test}[elsewhere-unchecked-{a}]" for a in attacks]
    environment = {"AGENTGYMS_ATTACK_URL": running.url, "AGENTGYMS_ATTACK_TOKEN": running.token}
    chosen = ["-k", "elsewhere and unchecked", "-m", "slow or not slow"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen, *asked],
        env=os.environ | environment,
        cwd=ATTACKS.parents[4],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert int(re.findall(r"(\d+) passed", done.stdout)[0]) >= len(attacks or range(40))
    assert inspect(running.name)["RestartCount"] == 0


def test_walls_hold_there_without_the_check_of_the_code(mini):
    attacks = runpy.run_path(str(ATTACKS.with_name("attacks.py")))
    filled = {
        name: _filled(attacks["UNGUARDED"] + code)
        for name, code in (attacks["READING"] | attacks["BREAKING"]).items()
    }
    done = docker("exec", "-i", mini.name, "python", "-c", UNCHECKED, given=json.dumps(filled))
    found = json.loads(done.stdout)
    assert found.keys() == filled.keys()
    for name, (said, after) in found.items():
        assert mini.token not in said, f"{name} read the token"
        assert "IN {" not in said, f"{name} logged in"
        assert after == "42\n", f"{name} is still felt"


def _filled(code: str) -> str:
    packages = "/opt/agentgyms/lib/python3.11/site-packages"
    for name, value in {
        "{task_id!r}": repr("countnotes-t001_1"),
        "{root!r}": repr(packages),
        "{site!r}": repr(packages),
        "{folder!r}": repr("/tmp"),
        "{file!r}": repr("/tmp/secret"),
        "{written!r}": repr("/tmp/written"),
        "{other!r}": repr("someone@mail.example"),
        "{port}": "8000",
        "{pid}": "1",
        "{{": "{",
        "}}": "}",
    }.items():
        code = code.replace(name, value)
    return code


def test_a_fork_bomb_ends_at_the_limit_and_the_server_goes_on(mini):
    limit = SERVICES["appworld"]["pids_limit"]
    assert inspect(mini.name)["HostConfig"]["PidsLimit"] == limit
    assert limit // 2 < int(inside(mini.name, BOMB)) < limit
    assert play_expert(mini, 7)


def test_a_memory_bomb_ends_and_the_server_goes_on(mini):
    assert inspect(mini.name)["HostConfig"]["Memory"] == 2 * 2**30
    done = docker("exec", mini.name, "python", "-c", "x = bytearray(3 << 30)", check=False)
    assert done.returncode == 137
    assert play_expert(mini, 8)
    assert inspect(mini.name)["RestartCount"] == 0


def test_a_killed_executor_costs_only_its_turn(mini):
    local, remote = gym.make(ENV_ID), gym.make(ENV_ID, **mini.there())
    assert local.reset(seed=3) == remote.reset(seed=3)
    act = agentgyms.expert(local)
    code = act()
    assert remote.step(code) == local.step(code)
    program = (
        "import os, pathlib, signal, time\n"
        "killed = []\n"
        "for path in pathlib.Path('/proc').glob('[0-9]*/stat'):\n"
        "    pid = int(path.parts[2])\n"
        "    parent = int(path.read_text().rpartition(')')[2].split()[1])\n"
        "    line = pathlib.Path(f'/proc/{parent}/cmdline')\n"
        "    if line.exists() and b'executor' in line.read_bytes():\n"
        "        os.kill(pid, signal.SIGKILL)\n"
        "        killed.append(path)\n"
        "        print(pid)\n"
        "while any(path.exists() and ') Z ' not in path.read_text() for path in killed):\n"
        "    time.sleep(0.1)\n"  # on a busy machine a killed process lives on for a while
    )
    assert inside(mini.name, program).split()
    code = act()
    there, here = remote.step(code), local.step(code)
    assert (there[0], there[4]["state_key"]) == (here[0], here[4]["state_key"])
    remote.close()


def test_the_image_holds_the_apps_packed_only(engine):
    image = inspect(engine.name)["Image"]
    program = "import os\nfor top, _, names in os.walk('/'):\n    print(top, *names, sep='|')\n"
    done = docker("run", "--rm", "--entrypoint", "python", image, "-c", program)
    folders = {}
    for line in done.stdout.splitlines():
        top, *names = line.split("|")
        if not top.startswith(("/proc", "/sys", "/dev")):
            folders[top] = names
    assert "apps.bundle" in folders[f"{PACKED}/.source"]
    assert not [top for top in folders if top.startswith(f"{PACKED}/apps/") and "__pyc" not in top]
    assert not [
        top for top in folders if top.endswith(("/appworld-engine", "/base_dbs", "/api_docs"))
    ]
    unpacked = inside(engine.name, "import os; print(*os.listdir('/tmp/appworld-engine'))")
    assert "pyvenv.cfg" in unpacked


def test_it_stops_when_it_is_told_to(mini):
    started = time.monotonic()
    docker("stop", "-t", "15", mini.name)
    assert time.monotonic() - started < 8
    assert inspect(mini.name)["State"]["ExitCode"] == 0
    with pytest.raises(requests.ConnectionError):
        requests.get(f"{mini.url}/readyz", timeout=60)
    docker("start", mini.name)
    until(lambda: _ready(mini.url), 60)
    assert play_expert(mini, 1)


def _ready(url: str) -> bool:
    try:
        return bool(requests.get(f"{url}/readyz", timeout=60).json() == {"status": "ready"})
    except requests.RequestException:  # no reply, or one that is no JSON
        return False
