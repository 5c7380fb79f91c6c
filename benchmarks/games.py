"""The exact games: steps a second against Gymnasium's own, and what play without thought earns.

    python benchmarks/games.py            # both tables of docs/games.md
    python benchmarks/games.py --seconds 0.2 --only FrozenLake

Seconds are CPU time of one thread. A step is one of `env.step` through the whole interface, played by
chance; each game is warm: its boards were played before.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym

import agentgyms

GAMES = (
    *("FrozenLake", "Blackjack", "NumberLine", "EZPoints", "Points24", "Minesweeper"),
    *("Countdown", "TowerOfHanoi", "TextCraft", "BabyAI"),
)
ORIGINALS = {"FrozenLake": ("FrozenLake-v1", 4), "Blackjack": ("Blackjack-v1", 2)}


def speed(env: gym.Env[Any, Any], choose: Callable[[dict[str, Any]], Any], seconds: float) -> float:
    """Return the steps a second of CPU time; resets are not counted."""
    for warm in (True, False):
        taken, steps, number = 0.0, 0, 0
        while taken < seconds:
            _, info = env.reset(seed=number % 50)
            number, over = number + 1, False
            while not over:
                action = choose(info)
                begun = time.process_time()
                _, _, terminated, truncated, info = env.step(action)
                taken += time.process_time() - begun
                steps, over = steps + 1, terminated or truncated
        if not warm:
            return steps / taken
    raise AssertionError


def played(name: str, policy: Callable[[dict[str, Any]], str]) -> tuple[float, float]:
    """Return success and mean reward on each task of `valid_seen`, once."""
    env = gym.make(f"agentgyms/{name}-v0", split="valid_seen")
    won, reward = 0.0, 0.0
    for seed, task in enumerate(env.unwrapped.tasks):
        _, info = env.reset(seed=seed, options={"task_id": task})
        over = False
        while not over:
            _, earned, terminated, truncated, info = env.step(policy(info))
            reward, over = reward + float(earned), terminated or truncated
        won += info["success"]
    return won / len(env.unwrapped.tasks), reward / len(env.unwrapped.tasks)


def expert(name: str) -> tuple[float, float]:
    """Return success and mean reward of the expert on `valid_seen`."""
    env = gym.make(f"agentgyms/{name}-v0", split="valid_seen")
    best = agentgyms.expert(env)
    won, reward, tasks = 0.0, 0.0, env.unwrapped.tasks
    for seed, task in enumerate(tasks):
        _, info = env.reset(seed=seed, options={"task_id": task})
        over = False
        while not over:
            _, earned, terminated, truncated, info = env.step(best())
            reward, over = reward + float(earned), terminated or truncated
        won += info["success"]
    return won / len(tasks), reward / len(tasks)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=1.0, help="of CPU time for each figure")
    parser.add_argument("--only", nargs="*", default=list(GAMES), help="games")
    given = parser.parse_args()
    print("| game | steps a second | Gymnasium's own, in the same run | ratio |\n|---|---|---|---|")
    for name in given.only:
        rng = random.Random(0)
        env = gym.make(f"agentgyms/{name}-v0", split="sample")
        own = speed(env.unwrapped, lambda info: rng.choice(info["admissible_actions"]), given.seconds)
        theirs, ratio = "", ""
        if name in ORIGINALS:
            env_id, actions = ORIGINALS[name]
            original = gym.make(env_id)
            figure = speed(original.unwrapped, lambda _: rng.randrange(actions), given.seconds)
            theirs, ratio = f"{figure:,.0f}", f"{own / figure:.2f}"
        print(f"| {name} | {own:,.0f} | {theirs} | {ratio} |")
    print("\n| game | expert: success, reward | random | first listed action |\n|---|---|---|---|")
    for name in given.only:
        rng = random.Random(0)
        rows = (
            expert(name),
            played(name, lambda info: rng.choice(info["admissible_actions"])),
            played(name, lambda info: info["admissible_actions"][0]),
        )
        print(f"| {name} | " + " | ".join(f"{won:.0%}, {earned:.2f}" for won, earned in rows) + " |")


if __name__ == "__main__":
    main()
