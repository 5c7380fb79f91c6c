"""CPU time of Sokoban: this package's engine and environments beside gym-sokoban.

    AGENTGYMS_PEER_PYTHON=... python benchmarks/sokoban.py [--seeds 300]

gym-sokoban plays in a process of its own, in the interpreter that the variable names, on the same
rooms: 6 x 6 cells, one box or two, made from the same seeds. That the rooms are equal is checked on
the way. Times are CPU times of these processes, the least of several rounds on both sides: what
else runs on a machine only adds to them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym

import agentgyms
from agentgyms.envs.sokoban import image, peer_rooms, sources
from agentgyms.envs.sokoban.engine import Rewards, Room, State, room_of_tiles

PYTHON_VARIABLE = "AGENTGYMS_PEER_PYTHON"
SHAPE, NUM_GROUPS, GROUP_SIZE, NUM_STEPS = (6, 6), 32, 8, 2000
PEER = peer_rooms.PEERS["gym_sokoban"]

GYM_SOKOBAN = """
import json, os, random, sys, time, warnings
warnings.simplefilter("ignore")
replies = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
import numpy as np
from gym_sokoban.envs.room_utils import generate_room
from gym_sokoban.envs.sokoban_env import SokobanEnv

asked = json.load(sys.stdin)
clock = time.process_time

def seconds(call, rounds=3):
    times = []
    for _ in range(rounds):
        before = clock()
        call()
        times.append(clock() - before)
    return min(times)

def seeded(seed):
    random.seed(seed)
    np.random.seed(seed)

rooms = {}
def generate(boxes):
    made = rooms[boxes] = []
    for seed in range(asked["seeds"]):
        seeded(seed)
        try:
            fixed, state, _ = generate_room((6, 6), num_steps=20, num_boxes=boxes)
            made.append([fixed.tolist(), state.tolist()])
        except (RuntimeError, RuntimeWarning):
            made.append(None)

times = {f"generate {boxes}": seconds(lambda: generate(boxes), 2) for boxes in (1, 2)}
envs = [SokobanEnv(dim_room=(6, 6), max_steps=10**9, num_boxes=1) for _ in range(256)]

def reset():
    for number, env in enumerate(envs):
        seeded(number // 8)
        env.reset()

times["reset"] = seconds(reset, 2)
env, actions = envs[0], asked["actions"]

def step():
    for action in actions:
        env.step(action)

def render():
    for _ in actions:
        env.render("rgb_array")

times["step"] = seconds(step) / len(actions)
times["render"] = seconds(render) / len(actions)
json.dump({"times": times, "rooms": rooms}, replies)
"""
"""Times gym-sokoban and tells the rooms it made."""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seeds", type=int, default=300, help="rooms to generate")
    chosen = options.parse_args()
    rng = random.Random(0)
    actions = [rng.randint(1, 4) for _ in range(NUM_STEPS)]
    ours = measure(chosen.seeds, actions)
    theirs = measure_peer(chosen.seeds, actions)
    report(ours, theirs, chosen.seeds)


def seconds(call: Callable[[], Any], rounds: int = 10) -> float:
    """Return the least CPU seconds of a call."""
    times = []
    for _ in range(rounds):
        before = time.process_time()
        call()
        times.append(time.process_time() - before)
    return min(times)


def measure(seeds: int, actions: list[int]) -> dict[str, float]:
    times = {
        f"generate {boxes}": seconds(lambda boxes=boxes: generate(boxes, seeds), 2)
        for boxes in (1, 2)
    }
    times |= measure_resets()
    room = generate(1, 1)[0]
    assert room is not None
    times["step, rules"] = step_rules(room, actions)
    times["rules and picture"] = step_rules(room, actions, picture=True)
    times["render"] = seconds(lambda: render(room)) / NUM_STEPS
    for env_id in ("Sokoban", "VisualSokoban"):
        kwargs = {"cell_pixels": 16} if env_id == "VisualSokoban" else {}
        times[f"step, {env_id}"] = step_env(env_id, actions, **kwargs)
    return times


def generate(boxes: int, seeds: int) -> list[Room | None]:
    made: list[Room | None] = []
    for seed in range(seeds):
        try:
            made.append(peer_rooms.generate(SHAPE, boxes, seed, PEER))
        except peer_rooms.NoRoom:
            made.append(None)
    return made


def measure_resets() -> dict[str, float]:
    """Return the seconds of resetting all groups, through the whole interface."""
    times = {}
    before = time.process_time()
    len(gym.make("agentgyms/Sokoban-v0").unwrapped.tasks)
    times["pool"] = time.process_time() - before
    for name, kwargs in (
        ("Sokoban", {}),
        ("VisualSokoban", {"cell_pixels": 16}),
        ("Sokoban, compat_seed", {"compat_seed": True, "peer": "gym_sokoban"}),
    ):
        env_id = f"agentgyms/{name.partition(',')[0]}-v0"
        groups = [agentgyms.make_group(env_id, GROUP_SIZE, **kwargs) for _ in range(NUM_GROUPS)]
        reset_all(groups, 0)  # the pool of rooms, and everything that is made once
        rounds = iter(range(1, 100))

        def reset(groups: list[Any] = groups, rounds: Any = rounds) -> None:
            sources.load_room.cache_clear()
            reset_all(groups, next(rounds))

        times[f"reset, {name}"] = seconds(reset)
    return times


def reset_all(groups: list[Any], number: int) -> None:
    for index, group in enumerate(groups):
        group.reset(seed=number * len(groups) + index)


def render(room: Room) -> None:
    state = State(room)
    for _ in range(NUM_STEPS):
        image.draw(state)


def step_rules(room: Room, actions: list[int], *, picture: bool = False) -> float:
    """Return the seconds of a step and its reward, and of the picture if there is one."""
    rewards = Rewards()

    def play() -> None:
        state, before = State(room), 0
        for action in actions:
            state.step(action)
            after = state.boxes_on_target
            rewards.earned(before, after, state.solved)
            before = after
            if picture:
                image.draw(state)

    return seconds(play) / len(actions)


def step_env(name: str, actions: list[int], **kwargs: Any) -> float:
    """Return the seconds of `env.step`, with its observation and info."""
    env = gym.make(
        f"agentgyms/{name}-v0", max_turns=10**9, difficulty=[12, 15], rooms=50, **kwargs
    ).unwrapped
    env.reset(seed=0)
    words = ("up", "down", "left", "right")

    def play() -> None:
        for action in actions:
            _, _, terminated, _, _ = env.step(words[action - 1])
            if terminated:
                env.reset(seed=0)

    return seconds(play) / len(actions)


def measure_peer(seeds: int, actions: list[int]) -> dict[str, float] | None:
    """Return gym-sokoban's times, or None if there is no interpreter with it."""
    python = os.environ.get(PYTHON_VARIABLE, sys.executable)
    run = subprocess.run(
        [python, "-c", GYM_SOKOBAN],
        input=json.dumps({"seeds": seeds, "actions": actions}),
        capture_output=True,
        text=True,
    )
    if run.returncode:
        print(f"gym-sokoban does not run in {python}: set {PYTHON_VARIABLE}")
        return None
    answer = json.loads(run.stdout)
    for boxes, rooms in answer["rooms"].items():
        theirs = [room and room_of_tiles(room[1], room[0]) for room in rooms]
        assert theirs == generate(int(boxes), seeds), "the rooms differ"
    print(f"rooms of {seeds} seeds, one box and two: equal")
    times: dict[str, float] = answer["times"]
    return times


def report(ours: dict[str, float], theirs: dict[str, float] | None, seeds: int) -> None:
    rows = [
        ("a room from a seed, 1 box", ours["generate 1"] / seeds, "generate 1", seeds),
        ("a room from a seed, 2 boxes", ours["generate 2"] / seeds, "generate 2", seeds),
        ("reset 32 groups x 8", ours["reset, Sokoban"], "reset", 1),
        ("  VisualSokoban, 96 x 96", ours["reset, VisualSokoban"], "reset", 1),
        ("  rooms made anew from seeds", ours["reset, Sokoban, compat_seed"], "reset", 1),
        ("step, with picture", ours["rules and picture"], "step", 1),
        ("  without (theirs with)", ours["step, rules"], "step", 1),
        ("  Sokoban, whole interface", ours["step, Sokoban"], "step", 1),
        ("  VisualSokoban, with picture", ours["step, VisualSokoban"], "step", 1),
        ("render, 96 x 96", ours["render"], "render", 1),
    ]
    print(f"\n{'least CPU time, 6 x 6 rooms':32}{'agentgyms':>14}{'gym-sokoban':>14}{'ratio':>8}")
    for what, mine, name, count in rows:
        row = f"{what:32}{shown(mine):>14}"
        if theirs:
            other = theirs[name] / count
            row += f"{shown(other):>14}{other / mine:>7.0f}x"
        print(row)
    print(f"\n10,000 rooms of the own generator, made once per process: {shown(ours['pool'])}")


def shown(value: float) -> str:
    unit, factor = ("us", 1e6) if value < 1e-3 else ("ms", 1e3) if value < 1 else ("s", 1)
    return f"{value * factor:.1f} {unit}"


if __name__ == "__main__":
    main()
