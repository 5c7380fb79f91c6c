"""The exact games: steps a second against Gymnasium's own, and what play without thought earns.

    python benchmarks/games.py            # both tables of docs/games.md
    python benchmarks/games.py --seconds 0.2 --only FrozenLake

Seconds are CPU time of one thread. A step is one `env.step` through the whole interface, played by
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


def speeds(name: str, seconds: float) -> tuple[float, float | None]:
    """Return the steps a second of a game, and of Gymnasium's own."""
    rng = random.Random(0)
    env = gym.make(f"agentgyms/{name}-v0", split="sample")
    own = speed(env.unwrapped, lambda info: rng.choice(info["admissible_actions"]), seconds)
    if name not in ORIGINALS:
        return own, None
    env_id, actions = ORIGINALS[name]
    return own, speed(gym.make(env_id).unwrapped, lambda _: rng.randrange(actions), seconds)


def floors(name: str) -> list[tuple[float, float]]:
    """Return success and mean reward of the expert, of random and of constant play."""
    rng = random.Random(0)
    random_play = played(name, lambda info: rng.choice(info["admissible_actions"]))
    return [expert(name), random_play, played(name, lambda info: info["admissible_actions"][0])]


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=1.0, help="of CPU time for each figure")
    parser.add_argument("--only", nargs="*", default=list(GAMES), help="games")
    given = parser.parse_args()
    print("| game | steps a second | Gymnasium's own, in the same run | ratio |\n|---|---|---|---|")
    for name in given.only:
        own, theirs = speeds(name, given.seconds)
        beside = f"{theirs:,.0f} | {own / theirs:.2f}" if theirs else "|"
        print(f"| {name} | {own:,.0f} | {beside} |")
    print("\n| game | expert: success, reward | random | first listed action |\n|---|---|---|---|")
    for name in given.only:
        rows = [f"{won:.0%}, {earned:.2f}" for won, earned in floors(name)]
        print(f"| {name} | {' | '.join(rows)} |")


if __name__ == "__main__":
    main()
