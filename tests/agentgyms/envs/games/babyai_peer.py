"""Plays MiniGrid's own BabyAI levels and ours side by side; run in a Python with `minigrid`.

Standard input is JSON: `episodes` of each level, `turns` and `seed`. Standard output has how many
steps were compared, the missions that were completed, and the differences.
"""

import contextlib
import io
import json
import random
import sys
from collections import Counter

import gymnasium as gym
import minigrid  # noqa: F401 (registers the levels)

from agentgyms.envs.games.babyai import routes, view, world
from agentgyms.envs.games.babyai.levels import LEVELS, scene


def theirs(env):
    """Return walls, doors and things by cell, the agent, what it carries, and what it sees."""
    cells = {}
    for column in range(env.grid.width):
        for row in range(env.grid.height):
            one = env.grid.get(column, row)
            if one is not None:
                is_open = one.type == "door" and one.is_open
                cells[column, row] = (one.type, one.type != "wall" and one.color, is_open)
    carried = env.carrying and (env.carrying.type, env.carrying.color)
    _, mask = env.gen_obs_grid()
    seen = {(i - 3, 6 - j) for i in range(7) for j in range(7) if mask[i, j]}
    return cells, (*map(int, env.agent_pos), int(env.agent_dir)), carried, seen


def ours(board, state):
    """Return the same of our state."""
    cells = {
        (column, row): ("wall", False, False)
        for row, signs in enumerate(board.rows)
        for column, sign in enumerate(signs)
        if sign == "#"
    }
    width = len(board.rows[0])
    for number, (color, cell) in enumerate(board.doors):
        cells[cell % width, cell // width] = ("door", color, bool(state.opened[number]))
    for (kind, color, _), cell in zip(board.things, state.places, strict=True):
        if cell >= 0:
            cells[cell % width, cell // width] = (kind, color, False)
    held = world.CARRIED in state.places
    carried = board.things[state.places.index(world.CARRIED)][:2] if held else None
    return cells, (state.column, state.row, state.facing), carried, set(view.seen(board, state))


def play(level, seed, turns, rng, said):
    env = gym.make(f"BabyAI-{level}-v0").unwrapped
    with contextlib.redirect_stdout(io.StringIO()):  # it prints rooms that it refuses
        env.reset(seed=seed)
    board = scene(level, seed)
    state, steps = world.first(board), 0
    if (env.mission, env.max_steps) != (board.mission, board.steps):
        said["differences"].append([level, seed, "mission", env.mission, board.mission])
    directed = rng.random() < 0.5
    while True:
        if theirs(env) != ours(board, state):
            said["differences"].append([level, seed, steps])
            return
        if state.done or steps == turns:
            said["completed"][level] += state.done
            return
        best = routes.best(board, state)
        if directed and best and rng.random() < 0.8:
            action = world.ACTIONS.index(best)
        else:
            action = rng.choice([0, 1, 2, 2, 3, 4, 5])
        _, reward, over, cut, _ = env.step(action)
        state, steps = world.after(board, state, action), steps + 1
        said["steps"] += 1
        expected = 1 - 0.9 * (steps / board.steps) if state.done else 0
        if (over, reward) != (bool(state.done), expected) or cut != (steps >= board.steps):
            said["differences"].append([level, seed, steps, over, reward])
            return


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    said = {"steps": 0, "completed": Counter(), "differences": []}
    rng = random.Random(asked["seed"])
    for level in LEVELS:
        for number in range(asked["episodes"]):
            play(level, asked["seed"] + number, asked["turns"], rng, said)
    json.dump(said, sys.stdout)
