"""Sessions of clients that go away, and connections that do."""

from __future__ import annotations

import gc
import os
import socket
import subprocess
import sys
import time

import pytest
import requests
from server_faults import CORRIDOR, HURRIED, TOKEN

from agentgyms.remote import InProcessTransport, RemoteEnv, RemoteVectorEnv
from agentgyms.serving.server import Server
from env_servers import create_app


@pytest.fixture
def app():
    return create_app(CORRIDOR)


def _open(app) -> int:
    return len(app.extensions["agentgyms"].sessions)


def test_closing_closes_the_session(remote, app):
    env = remote(app)
    assert _open(app) == 1
    env.close()
    assert _open(app) == 0


def test_a_forgotten_client_closes_its_session(remote, app):
    env = remote(app)
    env.reset(seed=0)
    twin = env.fork()
    assert _open(app) == 2
    del twin
    gc.collect()
    assert _open(app) == 1
    del env
    gc.collect()
    assert _open(app) == 0


def test_a_forgotten_vector_closes_its_sessions(app):
    vector = RemoteVectorEnv(
        CORRIDOR, 5, url="http://server", transport=InProcessTransport({"http://server": app})
    )
    vector.reset(seed=0)
    assert _open(app) == 5
    del vector
    gc.collect()
    assert _open(app) == 0


def test_closing_a_vector(app):
    vector = RemoteVectorEnv(
        CORRIDOR, 5, url="http://server", transport=InProcessTransport({"http://server": app})
    )
    vector.close()
    vector.close()
    assert (_open(app), vector.closed) == (0, True)


def test_closing_after_the_server_has_gone_is_quick_and_quiet():
    apps = {"http://server": create_app(CORRIDOR)}
    transport = InProcessTransport(apps)
    env = RemoteEnv(CORRIDOR, url="http://server", transport=transport, patience=HURRIED)
    vector = RemoteVectorEnv(
        CORRIDOR, 3, url="http://server", transport=transport, patience=HURRIED
    )
    apps.clear()
    started = time.monotonic()
    env.close()
    vector.close()
    assert time.monotonic() - started < 2


def test_a_forked_process_leaves_its_parents_session_alone(remote, app):
    env = remote(app)
    env.reset(seed=0)
    child = os.fork()
    if child == 0:
        env.close()
        os._exit(0 if _open(app) == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert env.step("right")[4]["turn"] == 1


def test_a_program_that_just_ends_leaves_no_session():
    app = create_app(CORRIDOR, token=TOKEN)
    program = (
        "import gymnasium, agentgyms, sys\n"
        f"env = gymnasium.make('{CORRIDOR}', url=sys.argv[1])\n"
        "env.reset(seed=0)\n"
        "print(env.step('right')[4]['turn'])\n"
    )
    with Server(app) as server:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", program, server.url],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "AGENTGYMS_TOKEN": TOKEN},
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert (done.stdout, done.stderr) == ("1\n", "")
        assert _open(app) == 0


def _connections(env: RemoteEnv):
    """Return the open connections of an environment."""
    return [one for idle in env.lease.endpoint.transport._idle.values() for one in idle]


def test_a_connection_that_was_closed_is_opened_again(live):
    env = RemoteEnv(CORRIDOR, url=live, token=TOKEN)
    env.reset(seed=0)
    [connection] = _connections(env)
    connection.sock.shutdown(socket.SHUT_RDWR)
    assert env.step("right")[4]["turn"] == 1
    [another] = _connections(env)
    assert another is not connection
    assert connection.sock is None


def test_one_connection_serves_all_episodes(live):
    env = RemoteEnv(CORRIDOR, url=live, token=TOKEN)
    [connection] = _connections(env)
    link = connection.sock
    for seed in range(3):
        env.reset(seed=seed)
        env.step("right")
    assert _connections(env) == [connection]
    assert connection.sock is link


def test_a_remote_environment_needs_only_the_core(live):
    program = (
        "import sys\n"
        "for name in ('flask', 'waitress', 'prometheus_client', 'agentgyms.envs.corridor'):\n"
        "    sys.modules[name] = None\n"
        "import gymnasium, agentgyms\n"
        f"env = gymnasium.make('{CORRIDOR}', url={live!r}, token={TOKEN!r})\n"
        "env.reset(seed=0)\n"
        "env.close()\n"
        "assert not [m for m in sys.modules if m.startswith(('env_servers', 'torch'))]\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)


def test_sessions_of_clients_that_were_killed_expire():
    app = create_app(CORRIDOR, ttl_s=0.2, token="")
    with Server(app) as server:
        requests.post(f"{server.url}/v1/sessions", timeout=60)
        assert _open(app) == 1
        deadline = time.monotonic() + 5
        while _open(app) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert _open(app) == 0
