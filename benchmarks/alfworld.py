"""CPU time and memory of ALFWorld games: this package's engine beside the official one.

    AGENTGYMS_ALFWORLD_PYTHON=... python benchmarks/alfworld.py [--data FOLDER] [--games 6]

Both engines play the same games with the same commands, one after the other, each in a process of
its own; times are CPU times of these processes. Without `--data`, and without an imported data set,
generated games with large rooms are played.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import Any

import gymnasium as gym

from agentgyms.core.errors import DataMissing
from agentgyms.envs.alfworld import sources
from agentgyms.envs.alfworld.env import first_state
from agentgyms.envs.alfworld.generated import generator
from agentgyms.envs.alfworld.generated.writer import write_games
from agentgyms.envs.alfworld.official.engine import PYTHON_VARIABLE

NUM_TURNS = 25
NUM_ENVS = 500
ENV_ID = "agentgyms/ALFWorld-v0"

OFFICIAL = """
import json, os, sys, tempfile, time
os.environ.setdefault("ALFWORLD_DATA", tempfile.mkdtemp())
import textworld
from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
from textworld.envs import PddlEnv

replies = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
clock = time.process_time
env = AlfredDemangler(PddlEnv(textworld.EnvInfos(won=True, admissible_commands=True)))
loads, steps = [], []
for path, commands in json.load(sys.stdin):
    before = clock()
    env.load(path)
    env.reset()
    loads.append(clock() - before)
    for command in commands:
        before = clock()
        env.step(command)
        steps.append(clock() - before)
json.dump([loads, steps], replies)
"""
"""Plays games in the official engine and reports the CPU time of each load with reset, and step."""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", help="folder of official games; default: the imported data set")
    options.add_argument("--games", type=int, default=6, help="games for the official engine")
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = games_folder(chosen.data, Path(scratch))
        played = plan(folder, chosen.games, chosen.seed)
        native = measure_native(folder, chosen.seed)
        official = measure_official(folder, played)
        report_times(native, official)
        report_memory(folder)


def games_folder(given: str | None, scratch: Path) -> str:
    """Return the folder to play, and say what is in it."""
    try:
        source = sources.open_source("official", given, "small")
        assert isinstance(source, sources.Official)
        print(f"official games of {source.folder}")
        return str(source.folder)
    except DataMissing:
        if given:
            raise
        print("generated games, large rooms: the official data set is not imported")
    tasks = generator.list_tasks("large", "train")[::6]
    write_games("train", scratch, rooms="large", task_ids=[task.task_id for task in tasks])
    return str(scratch)


def make(folder: str) -> Any:
    return gym.make(ENV_ID, source="official", data_path=folder, split="train").unwrapped


def plan(folder: str, num_games: int, seed: int) -> list[tuple[str, list[str]]]:
    """Return some games and random commands for each."""
    env, rng, games = make(folder), random.Random(seed), []
    for task_id in rng.sample(list(env.tasks), num_games):
        _, info = env.reset(options={"task_id": task_id})
        commands, over = [], False
        while not over and len(commands) < NUM_TURNS:
            commands.append(rng.choice(info["admissible_actions"]))
            *_, terminated, truncated, info = env.step(commands[-1])
            over = terminated or truncated
        games.append((task_id, commands))
    return games


def forget_games() -> None:
    """Empty the caches, so that every game is loaded anew."""
    sources.load_game.cache_clear()
    first_state.cache_clear()


def measure_native(folder: str, seed: int) -> tuple[list[float], list[float]]:
    """Return CPU seconds of each load with reset, and of each whole `env.step`."""
    loads, steps = [], []
    games = plan(folder, 60, seed)
    for round_number in range(3):
        forget_games()
        env = make(folder)
        env.reset(seed=0)
        for task_id, commands in games:
            before = time.process_time()
            env.reset(options={"task_id": task_id})
            loads.append(time.process_time() - before)
            before = time.process_time()
            for command in commands:
                env.step(command)
            # The clock is coarse beside a single step, hence the mean over an episode.
            steps += [(time.process_time() - before) / len(commands)] * bool(round_number)
    return loads, steps


def measure_official(
    folder: str, games: list[tuple[str, list[str]]]
) -> tuple[list[float], list[float]] | None:
    """Return the same of the official engine, or None if there is no interpreter with it."""
    python = os.environ.get(PYTHON_VARIABLE, sys.executable)
    files = [[str(Path(folder, "train", name, "game.tw-pddl")), todo] for name, todo in games]
    run = subprocess.run(
        [python, "-c", OFFICIAL], input=json.dumps(files), capture_output=True, text=True
    )
    if run.returncode:
        print(f"the official engine does not run in {python}: set {PYTHON_VARIABLE}")
        return None
    loads, steps = json.loads(run.stdout)
    return loads, steps


def report_times(native: Any, official: Any) -> None:
    print(f"\n{'CPU time, median (mean)':28}{'agentgyms':>22}{'official':>24}{'ratio':>9}")
    for what, ours, theirs in zip(
        ("load + reset", "step"), native, official or ([], []), strict=True
    ):
        row = f"{what:28}{shown(ours):>22}"
        if theirs:
            ratio = statistics.median(theirs) / statistics.median(ours)
            row += f"{shown(theirs):>24}{ratio:>8.0f}x"
        print(row)


def shown(seconds: list[float]) -> str:
    median, mean = statistics.median(seconds), statistics.mean(seconds)
    unit, factor = ("us", 1e6) if median < 1e-3 else ("ms", 1e3)
    return f"{median * factor:.1f} ({mean * factor:.1f}) {unit}"


def report_memory(folder: str) -> None:
    """Print what one more environment takes, with a shared game and with one of its own."""
    env = make(folder)
    ids = list(env.tasks)[:NUM_ENVS]
    print(f"\nmemory per environment, of {len(ids)} that have played 10 turns")
    for what, tasks in (("all in one game", ids[:1] * len(ids)), ("each in another game", ids)):
        forget_games()
        warm = played(folder, ids[0])
        tracemalloc.start()
        envs = [played(folder, task_id) for task_id in tasks]
        traced = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        print(f"  {what:24}{traced / len(envs) / 1e3:6.1f} kB")
        del envs, warm
    resident = subprocess.run(
        [sys.executable, __file__, "--resident", folder], capture_output=True, text=True, check=True
    )
    print(f"  {'resident, one game':24}{float(resident.stdout):6.1f} kB")


def played(folder: str, task_id: str) -> Any:
    env = make(folder)
    _, info = env.reset(seed=1, options={"task_id": task_id})
    for turn in range(10):
        *_, info = env.step(info["admissible_actions"][turn % len(info["admissible_actions"])])
    return env


def print_resident(folder: str) -> None:
    """Print by how many kB the process grows per environment."""
    played(folder, next(iter(make(folder).tasks)))
    before = resident_kb()
    envs = [played(folder, next(iter(make(folder).tasks))) for _ in range(NUM_ENVS)]
    print((resident_kb() - before) / len(envs))


def resident_kb() -> float:
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / 1024


if __name__ == "__main__":
    if sys.argv[1:2] == ["--resident"]:
        print_resident(sys.argv[2])
    else:
        main()
