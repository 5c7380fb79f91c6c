"""Throughput and memory of AppWorld, beside bare `appworld serve environment`.

    AGENTGYMS_APPWORLD_PYTHON=... python benchmarks/appworld.py [--episodes 16]

Reference solutions of training tasks are played from `reset` to the verdict: on MiniAppWorld, on
the real engine behind `agentgyms/AppWorld-v0`, and, with the same tasks and the same code, on
servers that AppWorld starts itself, one world each. All run on this machine, one after the other;
without an interpreter that has AppWorld, MiniAppWorld alone.

Times are those of the clock on the wall. Memory is the proportional set size of a process with all
that it started, in which a page that n processes share counts as its n-th part.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
from appworld_peer import peers, play_all
from process_memory import proportional, tree

from agentgyms.envs.appworld import sources
from agentgyms.envs.appworld.sandbox.install import PYTHON_VARIABLE

ENV_ID = "agentgyms/AppWorld-v0"
NUM_EPISODES, NUM_CALLS = 16, 50
AT_ONCE, LIVE = (1, 4), (1, 8, 32)
NOTHING = "print(1)"
CALLS = f"for _ in range({NUM_CALLS}): apis.api_docs.show_app_descriptions()"
MIB = 1 << 20


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--episodes", type=int, default=NUM_EPISODES, help="of each measurement")
    options.add_argument("--play", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.play:
        print(json.dumps(measure(**json.loads(chosen.play))))
        return
    print(f"{os.cpu_count()} cores, {chosen.episodes} episodes a figure")
    report("MiniAppWorld", measured("mini", chosen.episodes))
    if not os.environ.get(PYTHON_VARIABLE):
        print(f"\nthe real engine: not measured, {PYTHON_VARIABLE} names no interpreter")
        return
    own = measured("appworld", chosen.episodes)
    report("the real engine", own)
    bare = measure_peers(chosen.episodes, own["num_calls"])
    report("bare `appworld serve environment`, one world each", bare)
    compare(own, bare)


# --- this package ---------------------------------------------------------------------------------


def measured(engine: str, num_episodes: int) -> dict[str, Any]:
    """Return what `measure` finds in a process of its own."""
    asked = {"engine": engine, "num_episodes": num_episodes, "started": time.time()}
    done = subprocess.run(
        [sys.executable, __file__, "--play", json.dumps(asked)], stdout=subprocess.PIPE, check=True
    )
    return dict(json.loads(done.stdout))


def measure(engine: str, num_episodes: int, started: float) -> dict[str, Any]:
    """Return times and memory of the environment in this process."""
    player = Player(engine)
    episodes = chosen_episodes(engine, num_episodes)
    player.play(*episodes[0])
    player.num_calls = 0
    found: dict[str, Any] = {"start_s": time.time() - started}
    found["reset_ms"] = milliseconds(lambda: player.env.reset(seed=0), 20)
    found |= execution_times(player.env.step)
    for number in AT_ONCE:
        players = [player, *(Player(engine) for _ in range(number - 1))]
        found[f"seconds_{number}"] = play_all(players, episodes)
        found["num_calls"] = sum(one.num_calls for one in players)
        for one in players:
            one.num_calls = 0
        for one in players[1:]:
            one.env.close()
    player.env.close()
    sizes = {"num_episodes": num_episodes, "num_turns": sum(len(code) for _, code in episodes)}
    return found | sizes | live_memory(engine, episodes)


class Player:
    """An environment that plays given code."""

    def __init__(self, engine: str) -> None:
        self.env: Any = gym.make(ENV_ID, engine=engine, split="train")
        self.num_calls = 0

    def play(self, task_id: str, blocks: Sequence[str]) -> None:
        """Play an episode."""
        self.env.reset(options={"task_id": task_id})
        wrong = []
        for code in blocks:
            _, _, terminated, _, info = self.env.step(code)
            wrong += [info["feedback_text"]] if info["feedback_text"] else []
        if not (terminated and info["success"]):
            raise RuntimeError(f"the reference solution of {task_id} fails: {wrong} {info}")
        self.num_calls += int(info["metrics"]["api_calls"])


def chosen_episodes(engine: str, number: int) -> list[tuple[str, list[str]]]:
    """Return tasks, spread over the training split, each with the code that solves it."""
    tasks = sources.open_tasks(engine, "generated", None)
    ids = list(tasks.families("train"))
    spread = [ids[n * len(ids) // number] for n in range(number)]
    return [(task_id, list(tasks.solution(task_id) or ())) for task_id in spread]


def execution_times(execute: Callable[[str], Any]) -> dict[str, float]:
    """Return the time of an execution that does nothing, and of a call of an API."""
    empty_ms = milliseconds(lambda: execute(NOTHING), 30)
    calls_ms = milliseconds(lambda: execute(CALLS), 3)
    return {"execute_ms": empty_ms, "call_ms": (calls_ms - empty_ms) / NUM_CALLS}


def milliseconds(call: Callable[[], Any], number: int) -> float:
    """Return the median time of calls."""
    times = []
    for _ in range(number):
        before = time.perf_counter()
        call()
        times.append(time.perf_counter() - before)
    return 1e3 * statistics.median(times)


def live_memory(engine: str, episodes: Sequence[tuple[str, Sequence[str]]]) -> dict[str, float]:
    """Return the memory of episodes that have taken a turn, and go on."""
    base = proportional(tree(os.getpid()))
    found: dict[str, float] = {"base_mib": base / MIB}
    players: list[Player] = []
    for number in LIVE:
        while len(players) < number:
            players.append(Player(engine))
            task_id, blocks = episodes[len(players) % len(episodes)]
            players[-1].env.reset(options={"task_id": task_id})
            players[-1].env.step(blocks[0])
        found[f"live_{number}_mib"] = (proportional(tree(os.getpid())) - base) / MIB
    for player in players:
        player.env.close()
    return found


# --- AppWorld's own server ------------------------------------------------------------------------


def measure_peers(num_episodes: int, num_calls: int) -> dict[str, Any]:
    """Return times and memory of servers that play the same episodes."""
    tasks: Any = sources.open_tasks("appworld", "generated", None)
    episodes = chosen_episodes("appworld", num_episodes)
    found: dict[str, Any] = {"num_episodes": num_episodes, "num_calls": num_calls}
    found["num_turns"] = sum(len(code) for _, code in episodes)
    first = episodes[0][0]
    for number in AT_ONCE:
        with tempfile.TemporaryDirectory(prefix="appworld-") as scratch:
            before = time.perf_counter()
            data = tasks.roots.truth / "data"
            with peers(number, tasks.python, data, Path(scratch)) as servers:
                for server in servers:
                    server.play(*episodes[0])
                found.setdefault("start_s", time.perf_counter() - before)
                if number == 1:
                    [server] = servers
                    found["reset_ms"] = milliseconds(
                        lambda one=server: one.request("initialize", task_id=first), 5
                    )
                    found |= execution_times(
                        lambda code, one=server: one.request("execute", task_id=first, code=code)
                    )
                found[f"seconds_{number}"] = play_all(servers, episodes)
                pids = [pid for server in servers for pid in tree(server.process.pid)]
                found[f"live_{number}_mib"] = proportional(pids) / MIB
    return found


# --- figures --------------------------------------------------------------------------------------


def report(title: str, found: Mapping[str, Any]) -> None:
    """Print what was measured."""
    print(f"\n{title}")
    line("start, first episode included", found["start_s"], "s")
    line("reset", found["reset_ms"], "ms")
    line("a turn that does nothing", found["execute_ms"], "ms")
    line("an API call within a turn", found["call_ms"], "ms")
    for number in AT_ONCE:
        seconds = found[f"seconds_{number}"]
        for what in ("episodes", "turns", "calls"):
            line(f"{what} a second, {number} at a time", found[f"num_{what}"] / seconds, "")
    if "base_mib" in found:
        line("memory before any episode, fork servers included", found["base_mib"], "MiB")
    for key, value in found.items():
        if key.startswith("live_"):
            number = int(key.split("_")[1])
            line(f"memory of {number} episodes, of each", value / number, "MiB")


def line(what: str, value: float, unit: str) -> None:
    """Print a figure."""
    print(f"  {what:52}{value:>10.2f} {unit}", flush=True)


def compare(own: Mapping[str, Any], bare: Mapping[str, Any]) -> None:
    """Print how many times as much, or as fast, the bare servers are."""
    print("\nbare servers : this package")
    for what, key in (
        ("start", "start_s"),
        ("reset", "reset_ms"),
        ("a turn that does nothing", "execute_ms"),
        ("an API call within a turn", "call_ms"),
        *((f"time of an episode, {n} at a time", f"seconds_{n}") for n in AT_ONCE),
    ):
        line(what, bare[key] / own[key], "times")
    most_own, most_bare = LIVE[-1], AT_ONCE[-1]
    each_own = own[f"live_{most_own}_mib"] / most_own
    line("memory of an episode", bare[f"live_{most_bare}_mib"] / most_bare / each_own, "times")


if __name__ == "__main__":
    main()
