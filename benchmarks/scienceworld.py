"""ScienceWorld: this package's engine beside the package `scienceworld` with its JVM.

    AGENTGYMS_SCIENCEWORLD_PYTHON=... python benchmarks/scienceworld.py [--games 6] [--turns 40]

Both play the same games with the same commands, one after the other, and list the valid actions in
every state. Times are by the clock: the JVM is a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
import tracemalloc
from typing import Any

import gymnasium as gym

import agentgyms  # noqa: F401 (registers the ids)
from agentgyms.envs.scienceworld.engine import PYTHON_VARIABLE
from agentgyms.envs.scienceworld.tasks import VARIATIONS, parsed

ENV_ID = "agentgyms/ScienceWorld-v0"
NUM_ENVS = 100

PACKAGE = """
import json, os, subprocess, sys, time
from scienceworld import ScienceWorldEnv

replies = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
clock = time.perf_counter
before = clock()
env = ScienceWorldEnv("", envStepLimit=10**6)
first, resets, steps = 0.0, [], []
for (name, variation), commands in json.load(sys.stdin):
    if first:
        before = clock()
    env.load(name, variation, "")
    env.reset()
    resets.append(clock() - before)
    first = first or resets.pop()
    for command in commands:
        before = clock()
        env.step(command)
        steps.append(clock() - before)
java = subprocess.run(["ps", "-eo", "ppid,rss,comm"], capture_output=True, text=True).stdout
rss = [int(r.split()[1]) for r in java.splitlines() if r.split()[0] == str(os.getpid())]
json.dump([first, resets, steps, max(rss) * 1024], replies)
"""


def played(games: int, turns: int) -> tuple[list[Any], float, list[float], list[float]]:
    """Return games with commands by chance, and the seconds of ours: first reset, resets, steps."""
    rng, names = random.Random(0), list(VARIATIONS)
    names = names[:: max(1, len(names) // games)][:games]
    clock, before = time.perf_counter, time.perf_counter()
    first, resets, steps, plans = 0.0, [], [], []
    env = gym.make(ENV_ID, split="sample", max_turns=turns, engine="own").unwrapped
    for name in [names[0], *names]:
        if first:
            before = clock()
        _, info = env.reset(seed=0, options={"task_id": f"{name}/0"})
        resets.append(clock() - before)
        commands: list[str] = []
        over = False
        while not over and len(commands) < turns:
            commands.append(rng.choice(info["admissible_actions"]))
            before = clock()
            *_, terminated, truncated, info = env.step(commands[-1])
            steps.append(clock() - before)
            over = terminated or truncated
        plans.append((parsed(env.tasks.find(f"{name}/0")), commands))
        first = first or resets.pop()
    return plans, first, resets, steps


def package(plans: list[Any]) -> tuple[float, list[float], list[float], float]:
    """Return the package's seconds of the same games, and its JVM's resident memory in bytes."""
    python = os.environ.get(PYTHON_VARIABLE, sys.executable)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [python, "-c", PACKAGE],
        input=json.dumps(plans),
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
        check=True,
    )
    first, resets, steps, memory = json.loads(done.stdout)
    return first, resets, steps, memory


def forks() -> list[float]:
    """Return the seconds of forks in the middle of an episode."""
    env = gym.make(ENV_ID, split="sample", engine="own").unwrapped
    _, info = env.reset(seed=0, options={"task_id": "boil/0"})
    for _ in range(20):
        *_, info = env.step(info["admissible_actions"][len(info["admissible_actions"]) // 2])
    found = []
    for _ in range(20):
        before = time.perf_counter()
        env.fork()
        found.append(time.perf_counter() - before)
    return found


def memory() -> float:
    """Return the bytes of one environment in an episode, among many."""
    envs = [gym.make(ENV_ID, split="sample", engine="own").unwrapped for _ in range(NUM_ENVS + 1)]
    envs[0].reset(seed=0)  # what all share
    tracemalloc.start()
    for env in envs[1:]:
        env.reset(seed=0)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return held / NUM_ENVS


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--games", type=int, default=6, help="tasks, of each the first variation")
    parser.add_argument("--turns", type=int, default=40)
    given = parser.parse_args()
    plans, first, resets, steps = played(given.games, given.turns)
    their_first, their_resets, their_steps, their_memory = package(plans)
    middle = statistics.median
    rows = [
        ("a new environment's first episode", first, their_first),
        ("reset", middle(resets), middle(their_resets)),
        ("step", middle(steps), middle(their_steps)),
    ]
    print("| | ours | scienceworld 1.2.3 | ratio |\n|---|---|---|---|")
    for what, own, theirs in rows:
        print(f"| {what} | {own * 1e3:.2f} ms | {theirs * 1e3:,.1f} ms | {theirs / own:,.0f} |")
    held = memory()
    print(
        f"| memory of an environment | {held / 1e3:,.0f} kB | {their_memory / 1e6:,.0f} MB "
        f"| {their_memory / held:,.0f} |"
    )
    print(f"| fork | {middle(forks()) * 1e3:.2f} ms | none | |")


if __name__ == "__main__":
    main()
