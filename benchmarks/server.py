"""What a step costs over a socket: latency, throughput and CPU time, beside a bare Flask route.

    python benchmarks/server.py [--seconds 1.5] [--rounds 7]

The environment's observations have 4 kB, and its step costs next to nothing: what is measured is
the way there and back. The server is a process of its own, `python -m env_servers`; this process is
the client, with one `RemoteEnv`, with 64 of them in a thread each, and with a `RemoteVectorEnv` of
64. Beside them stands a bare Flask route under waitress, called by `http.client`, which answers
with as many bytes and checks nothing; and the environment in this process.

Both sides, the bare one and ours, are measured in turns, and each figure is the best of several
rounds: what else runs on a machine only adds to them. CPU times are those of the client's and of
the server's process. Each figure stands beside its bound; one that misses it makes the exit code 1.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from server_parts import ACTIONS, ENV_ID, PlainClient, example

from agentgyms.core.serialization import dumps
from agentgyms.remote import RemoteEnv, RemoteVectorEnv
from agentgyms.remote.protocol.framing import TOKEN_VARIABLE

NUM_SESSIONS = 64
MOST_OVERHEAD_MS, MOST_P99_MS = 0.6, 120.0
LEAST_RATE, LEAST_BATCHED_RATE = 1500.0, 10_000.0
HERE = Path(__file__).parent
TICKS = os.sysconf("SC_CLK_TCK")
OURS = ["-m", "env_servers", f"server_parts:{ENV_ID}", "--port", "0"]
BARE = [str(HERE / "server_parts.py")]

Step = Callable[[str], Any]


class Figures(NamedTuple):
    """One round, or the best of several; times in milliseconds, of one step where it says so."""

    rate: float
    p50: float
    p99: float
    client_cpu: float
    server_cpu: float


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=float, default=1.5, help="of each round")
    options.add_argument("--rounds", type=int, default=7)
    chosen = options.parse_args()
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} before", end="; ")
    print(f"a reply has {len(dumps(example())):,} bytes")
    with server(OURS) as ours, server(BARE) as bare:
        found = measure(ours, bare, chosen.rounds, chosen.seconds)
    here = local_ms()
    print(f"load average {os.getloadavg()[0]:.1f} after\n")
    report(found, here)
    return check(found, here)


class Running(NamedTuple):
    """A server in a process of its own."""

    url: str
    pid: int

    def cpu_s(self) -> float:
        """Return the CPU time that it has taken so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS


@contextlib.contextmanager
def server(command: Sequence[str]) -> Iterator[Running]:
    """Run a server that prints its address as the last word of its first line."""
    kept = {name: value for name, value in os.environ.items() if name != TOKEN_VARIABLE}
    environment = kept | {"PYTHONPATH": str(HERE)}
    process = subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert process.stdout is not None
        yield Running(process.stdout.readline().split()[-1], process.pid)
    finally:
        process.terminate()
        process.wait(20)


# --- measuring ------------------------------------------------------------------------------------


def measure(ours: Running, bare: Running, rounds: int, seconds: float) -> dict[str, Figures]:
    """Return the best of several rounds of each way to take steps."""
    ways: dict[str, Callable[[], Figures]] = {
        "bare, 1": lambda: one_by_one(bare, 1, plain_client, seconds),
        "ours, 1": lambda: one_by_one(ours, 1, remote_env, seconds),
        "bare, 64": lambda: one_by_one(bare, NUM_SESSIONS, plain_client, seconds),
        "ours, 64": lambda: one_by_one(ours, NUM_SESSIONS, remote_env, seconds),
        "batched": lambda: batched(ours, seconds),
    }
    found: dict[str, list[Figures]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            found[name].append(way())
    return {name: best(figures) for name, figures in found.items()}


def best(rounds: Sequence[Figures]) -> Figures:
    """Return the highest rate and the least times."""
    rates, *times = zip(*rounds, strict=True)
    return Figures(max(rates), *map(min, times))


def plain_client(server: Running, number: int) -> PlainClient:
    return PlainClient(server.url, str(number))


def remote_env(server: Running, number: int) -> RemoteEnv:
    env = RemoteEnv(ENV_ID, url=server.url, token="")
    env.reset(seed=number)
    return env


def one_by_one(
    server: Running, number: int, make: Callable[[Running, int], Any], seconds: float
) -> Figures:
    """Measure clients in a thread each, which take one step after the other."""
    clients = [make(server, i) for i in range(number)]
    times: list[list[float]] = [[] for _ in clients]
    gate = threading.Barrier(number + 1)
    until = 0.0

    def play(step: Step, taken: list[float]) -> None:
        for action in ACTIONS:
            step(action)
        gate.wait()  # all have warmed up
        gate.wait()
        before = time.perf_counter()
        while before < until:
            step(ACTIONS[len(taken) % len(ACTIONS)])
            after = time.perf_counter()
            taken.append(after - before)
            before = after

    threads = [
        threading.Thread(target=play, args=(client.step, taken))
        for client, taken in zip(clients, times, strict=True)
    ]
    for thread in threads:
        thread.start()
    gate.wait()
    before = clocks(server)
    until = before[0] + seconds
    gate.wait()
    for thread in threads:
        thread.join()
    after = clocks(server)
    for client in clients:
        client.close()
    return figures(before, after, [t for taken in times for t in taken], 1)


def batched(server: Running, seconds: float) -> Figures:
    """Measure a vector of environments that takes one step after the other."""
    vector = RemoteVectorEnv(ENV_ID, NUM_SESSIONS, url=server.url, token="")
    vector.reset(seed=0)
    vector.step(ACTIONS[:1] * NUM_SESSIONS)
    times: list[float] = []
    before = clocks(server)
    while sum(times) < seconds:
        started = time.perf_counter()
        vector.step([ACTIONS[len(times) % len(ACTIONS)]] * NUM_SESSIONS)
        times.append(time.perf_counter() - started)
    after = clocks(server)
    vector.close()
    return figures(before, after, times, NUM_SESSIONS)


def clocks(server: Running) -> tuple[float, float, float]:
    """Return the time, and the CPU time of both processes."""
    return time.perf_counter(), time.process_time(), server.cpu_s()


def figures(
    before: Sequence[float], after: Sequence[float], times: Sequence[float], steps_each: int
) -> Figures:
    """Return what a round shows; a call takes `steps_each` steps."""
    wall, client, server = (b - a for a, b in zip(before, after, strict=True))
    steps = len(times) * steps_each
    p50, p99 = 1e3 * np.percentile(times, [50, 99])
    return Figures(steps / wall, float(p50), float(p99), 1e3 * client / steps, 1e3 * server / steps)


def local_ms() -> float:
    """Return the median time of a step in this process."""
    env: Any = gym.make(ENV_ID).unwrapped
    env.reset(seed=0)
    times = []
    for turn in range(5000):
        before = time.perf_counter()
        env.step(ACTIONS[turn % len(ACTIONS)])
        times.append(time.perf_counter() - before)
    return 1e3 * float(np.median(times))


# --- figures --------------------------------------------------------------------------------------


def report(found: dict[str, Figures], here: float) -> None:
    """Print the figures of each way."""
    print("| | steps/s | p50 of a call | p99 | client CPU per step | server CPU per step |")
    print("|---|--:|--:|--:|--:|--:|")
    names = {
        "bare, 1": "bare Flask and http.client, 1 connection",
        "ours, 1": "`RemoteEnv`, 1 session",
        "bare, 64": f"bare Flask and http.client, {NUM_SESSIONS} threads",
        "ours, 64": f"`RemoteEnv`, {NUM_SESSIONS} sessions in threads",
        "batched": f"`RemoteVectorEnv` of {NUM_SESSIONS}",
    }
    for key, name in names.items():
        rate, *times = found[key]
        print(f"| {name} | {rate:,.0f} | {' | '.join(f'{ms:.3f} ms' for ms in times)} |")
    print(f"| in this process | | {here:.3f} ms | | | |")


def check(found: dict[str, Figures], here: float) -> int:
    """Print the bounds beside what was found, and return the exit code."""
    one, many, batched = (found[name] for name in ("ours, 1", "ours, 64", "batched"))
    bare_one, bare_many = found["bare, 1"], found["bare, 64"]
    overhead, bare_overhead = one.p50 - here, bare_one.p50
    rows = [
        ("overhead of a step, p50, ms", overhead, bare_overhead, "at most", MOST_OVERHEAD_MS),
        (f"steps/s, {NUM_SESSIONS} sessions", many.rate, bare_many.rate, "at least", LEAST_RATE),
        ("  p99, ms", many.p99, bare_many.p99, "at most", MOST_P99_MS),
        ("  batched, steps/s", batched.rate, bare_many.rate, "at least", LEAST_BATCHED_RATE),
    ]
    print("\n| | agentgyms | bare | ratio | bound | |\n|---|--:|--:|--:|--:|---|")
    missed = 0
    for what, value, reference, sense, bound in rows:
        held = value <= bound if sense == "at most" else value >= bound
        missed += not held
        verdict = "held" if held else "MISSED"
        print(f"| {what} | {value:,.2f} | {reference:,.2f} | {value / reference:.2f} | ", end="")
        print(f"{sense} {bound:,g} | {verdict} |")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
