"""Many clients at once on a real socket: nobody sees another one's episode."""

from __future__ import annotations

import http.client
import threading
from concurrent.futures import ThreadPoolExecutor

import gymnasium as gym
import pytest
from server_faults import CORRIDOR, TOKEN, importable_environments

from agentgyms import testing
from agentgyms.serving.server import Server
from env_servers import create_app


@pytest.mark.parametrize("env_id", importable_environments())
def test_concurrent_sessions_equal_local_ones(env_id):
    clients, episodes = 8, 2
    gate = threading.Barrier(clients)

    def play(client: int) -> list[str]:
        env = gym.make(env_id, url=server.url, token=TOKEN, max_turns=8)
        gate.wait(20)
        seen = [step[2]["state_key"] for e in range(episodes) for step in _play(env, client, e)]
        env.close()
        return seen

    app = create_app(env_id, token=TOKEN)
    with Server(app, threads=8) as server, ThreadPoolExecutor(clients) as pool:
        remote = list(pool.map(play, range(clients)))
    local = gym.make(env_id, max_turns=8)
    for client in range(clients):
        expected = [s[2]["state_key"] for e in range(episodes) for s in _play(local, client, e)]
        assert remote[client] == expected
    assert len(app.extensions["agentgyms"].sessions) == 0


def _play(env, client: int, episode: int):
    return testing.play(env, 100 * client + episode)


def test_more_open_connections_than_waitress_allows_by_itself():
    """Clients keep their connections open while their agents think."""
    with Server(create_app(CORRIDOR), threads=2) as server:
        host, _, port = server.url.removeprefix("http://").partition(":")
        clients = [http.client.HTTPConnection(host, int(port), timeout=10) for _ in range(120)]
        for _ in range(2):
            for client in clients:
                client.request("GET", "/healthz")
                assert client.getresponse().read() == b'{"status":"ok"}'
        for client in clients:
            client.close()
