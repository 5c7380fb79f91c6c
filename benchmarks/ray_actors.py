"""Steps per second of environments in Ray actors, beside HTTP servers and this process.

    python benchmarks/ray_actors.py [--seconds 1.5] [--rounds 5]

64 environments of `benchmarks/server.py`, whose observations have 4 kB and whose steps cost next to
nothing, so that the way there and back is measured: as a vector, whose step is one message to each
actor or server, and in a thread each, as episodes are collected. They are in two actors on one
node, in two on two nodes (`ray.cluster_utils.Cluster`: processes of this machine), in two servers,
and in this process. All ways are measured in turns; each figure is the best of its rounds. Needs
the extra `ray`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import ray
from ray.cluster_utils import Cluster
from server import ACTIONS, ENV_ID, NUM_SESSIONS, OURS, server

from agentgyms.remote import RemoteEnv, RemoteVectorEnv

WHERE = f"server_parts:{ENV_ID}"  # an actor imports the module


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=float, default=1.5, help="of each round")
    options.add_argument("--rounds", type=int, default=5)
    chosen = options.parse_args()
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}, Ray {ray.__version__}\n")
    with server(OURS) as first, server(OURS) as second:
        servers = {"2 HTTP servers": [first.url, second.url]}
        found = on_a_cluster(1, servers | {"2 actors, 1 node": "ray://2"}, chosen)
        more = on_a_cluster(2, servers | {"2 actors, 2 nodes": "ray://2"}, chosen)
    report("one node", found)
    report("two nodes", more)


def on_a_cluster(
    num_nodes: int, places: dict[str, Any], chosen: argparse.Namespace
) -> dict[str, tuple[float, float]]:
    """Return the steps per second of a vector and of threads, at every place."""
    head = {"num_cpus": 0, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    for _ in range(num_nodes):
        cluster.add_node(num_cpus=2, wait=False)
    cluster.wait_for_nodes(timeout=300)
    ray.init(address=cluster.address, logging_level="ERROR", log_to_driver=False)
    rates: dict[str, list[tuple[float, float]]] = {}
    for _ in range(chosen.rounds):
        for name, url in places.items():
            rates.setdefault(name, []).append(
                (vector_rate(remote_vector(url), chosen.seconds), thread_rate(url, chosen.seconds))
            )
        alone = gym.make_vec(ENV_ID, NUM_SESSIONS, vectorization_mode="sync")
        rates.setdefault("this process", []).append(
            (vector_rate(alone, chosen.seconds), float("nan"))
        )
    ray.shutdown()
    cluster.shutdown()
    return {name: (max(v for v, _ in r), max(t for _, t in r)) for name, r in rates.items()}


def remote_vector(url: Any) -> Any:
    return RemoteVectorEnv(WHERE, NUM_SESSIONS, url=url, token="")


def vector_rate(envs: Any, seconds: float) -> float:
    """Return the steps per second of a vector of environments, which is closed."""
    envs.reset(seed=0)
    envs.step(ACTIONS[:1] * NUM_SESSIONS)
    begun, calls = time.perf_counter(), 0
    while time.perf_counter() < begun + seconds:
        envs.step([ACTIONS[calls % len(ACTIONS)]] * NUM_SESSIONS)
        calls += 1
    rate = calls * NUM_SESSIONS / (time.perf_counter() - begun)
    envs.close()
    return rate


def thread_rate(url: Any, seconds: float) -> float:
    """Return the steps per second of environments in a thread each."""
    envs = [RemoteEnv(WHERE, url=url, token="") for _ in range(NUM_SESSIONS)]
    for env in envs:
        env.reset(seed=0)
    steps = [0] * NUM_SESSIONS
    begun = time.perf_counter()

    def play(index: int) -> None:
        while time.perf_counter() < begun + seconds:
            envs[index].step(ACTIONS[steps[index] % len(ACTIONS)])
            steps[index] += 1

    threads = [threading.Thread(target=play, args=(index,)) for index in range(NUM_SESSIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rate = sum(steps) / (time.perf_counter() - begun)
    for env in envs:
        env.close()
    return rate


def report(title: str, found: dict[str, tuple[float, float]]) -> None:
    """Print the rates, and their ratio to the servers' in the same run."""
    vector, threads = found["2 HTTP servers"]
    print(f"| {title} | vector of {NUM_SESSIONS} | to HTTP | {NUM_SESSIONS} threads | to HTTP |")
    print("|---|--:|--:|--:|--:|")
    for name, rates in found.items():
        print(f"| {name} | {rates[0]:,.0f} | {rates[0] / vector:.2f} ", end="")
        print(f"| {rates[1]:,.0f} | {rates[1] / threads:.2f} |")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:  # this one's other modules would be Ray's too
        shutil.copy(Path(__file__).with_name("server_parts.py"), folder)
        paths = (folder, os.environ.get("PYTHONPATH"))
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        main()
