"""The generator: rooms that can be solved in time, all different, no floor plan in two splits."""

import json
import os
import random
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

import gymnasium as gym
import pytest
from sokoban_oracles import cornered, read, search, symmetric_copies

from agentgyms.core.errors import BadOption
from agentgyms.envs.sokoban import generator, solver
from agentgyms.envs.sokoban.engine import (
    BOX,
    BOX_ON_TARGET,
    FLOOR,
    PLAYER,
    PLAYER_ON_TARGET,
    TARGET,
    WALL,
    State,
)
from agentgyms.envs.sokoban.generator import Recipe, make_rooms
from agentgyms.envs.sokoban.sources import family_of

ENV_ID = "agentgyms/Sokoban-v0"
DEFAULT = Recipe(6, 6, 1, (0.2, 0.6), (3, 15))


def make(**kwargs):
    return gym.make(ENV_ID, **kwargs).unwrapped


def rows_of(made):
    width = len(made.tiles) // made.height
    return [made.tiles[i : i + width] for i in range(0, len(made.tiles), width)]


def plan_of(rows):
    """The floor plan: walls, floor and targets, no box and no player."""
    below = {BOX: FLOOR, PLAYER: FLOOR, PLAYER_ON_TARGET: TARGET}
    return [[below.get(tile, tile) for tile in row] for row in rows]


def canonical(rows):
    return min(map(cornered, symmetric_copies(rows)))


def assert_well_formed(made, recipe):
    """A room of the recipe: walls all round, boxes and targets, all floor reachable by foot."""
    rows = rows_of(made)
    assert (len(rows), {len(row) for row in rows}) == (recipe.height, {recipe.width})
    edge = [*rows[0], *rows[-1], *(row[0] for row in rows), *(row[-1] for row in rows)]
    assert set(edge) == {WALL}
    counts = [made.tiles.count(tile) for tile in range(7)]
    assert counts[TARGET] + counts[PLAYER_ON_TARGET] == counts[BOX] == recipe.boxes
    assert counts[PLAYER] + counts[PLAYER_ON_TARGET] == 1
    assert not counts[BOX_ON_TARGET]
    layout, position = read(rows)
    reached, frontier = {position.player}, [position.player]
    while frontier:
        r, c = frontier.pop()
        near = {(r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)} & layout.floor - reached
        reached |= near
        frontier += near
    assert reached == layout.floor


# --- the default rooms, all of them ---------------------------------------------------------------


def test_how_many_there_are(default_rooms):
    for split, rooms in default_rooms.items():
        env = make(split=split)
        assert len(env.tasks) == len(rooms) == (10_000 if split == "train" else 1_000)
        families = Counter(family_of(made.moves) for made in rooms)
        assert env.tasks.families() == families
        assert set(families) == {"01-05", "06-10", "11-15"}
        assert env._source.recipe == DEFAULT


def test_every_room_is_well_formed(default_rooms):
    for rooms in default_rooms.values():
        for made in rooms:
            assert_well_formed(made, DEFAULT)


def test_every_room_can_be_solved_in_as_many_moves_as_told(default_rooms):
    limit = make().max_turns
    for rooms in default_rooms.values():
        for made in rooms:
            assert solver.distance(State(made.room())) == made.moves
            assert 3 <= made.moves <= limit == 15


def test_a_plain_search_finds_the_same_lengths(default_rooms):
    rng = random.Random(0)
    for rooms in default_rooms.values():
        for made in rng.sample(rooms, 100):
            assert search(*read(rows_of(made))) == made.moves


def test_no_room_is_a_turned_or_mirrored_copy_of_another(default_rooms):
    for rooms in default_rooms.values():
        names = {canonical(rows_of(made)) for made in rooms}
        assert len(names) == len(rooms)


def test_no_floor_plan_is_in_two_splits(default_rooms):
    plans = {
        split: {canonical(plan_of(rows_of(made))) for made in rooms}
        for split, rooms in default_rooms.items()
    }
    assert all(len(names) > 200 for names in plans.values())
    assert not plans["train"] & plans["valid"]
    assert not plans["train"] & plans["test"]
    assert not plans["valid"] & plans["test"]


def test_the_share_of_walls(default_rooms):
    for made in default_rooms["valid"]:
        walls = made.tiles.count(WALL) - 20
        assert 0.2 <= walls / 16 <= 0.6


def test_fewer_rooms_are_the_first_of_more(default_rooms):
    for split, rooms in default_rooms.items():
        assert make_rooms(DEFAULT, split, 100) == rooms[:100], split


def test_tasks_are_the_rooms_in_order(default_rooms):
    env = make(split="valid", text_format="grid")
    assert env.tasks[:2] == ("valid/6x6-1-2f19-00000", "valid/6x6-1-2f19-00001")
    for number in (0, 7, 999):
        grid, info = env.reset(options={"task_id": f"valid/6x6-1-2f19-{number:05d}"})
        made = default_rooms["valid"][number]
        assert grid == "\n".join("".join("#_O√XPS"[t] for t in row) for row in rows_of(made))
        assert info["family"] == family_of(made.moves)


def test_the_sample_is_the_beginning_of_train():
    sample, train = make(split="sample"), make()
    assert list(sample.tasks) == list(train.tasks)[:12]
    for task_id in sample.tasks:
        options = {"task_id": task_id}
        assert sample.reset(options=options)[0] == train.reset(options=options)[0]


# --- the same everywhere --------------------------------------------------------------------------

ASKED = [
    (6, 6, 1, (0.2, 0.6), (3, 15), 300),
    (7, 9, 2, (0.2, 0.6), (3, 15), 40),
    (8, 8, 4, (0.5, 0.6), (3, 15), 1),
]
DIGEST = "f007a0213f579e23"
FEW = [(*fields, 20) for *fields, _ in ASKED[:2]]
DIGEST_OF_FEW = "ba4418bed1dba1ec"
SCRIPT = """
from test_sokoban_generator import digest_of_rooms
print(digest_of_rooms())
"""


def digest_of_rooms(asked=ASKED):
    h = sha256()
    for *fields, count in asked:
        for split in ("train", "valid"):
            h.update(repr(make_rooms(Recipe(*fields), split, count, progress=False)).encode())
    return h.hexdigest()[:16]


@pytest.mark.slow
def test_another_process_makes_the_same_rooms():
    here = os.path.dirname(__file__)  # noqa: PTH120
    path = os.pathsep.join([here, *sys.path])
    environ = {**os.environ, "PYTHONHASHSEED": "4321", "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environ, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == DIGEST


def test_the_rooms_stay_what_they_are():
    assert digest_of_rooms(FEW) == DIGEST_OF_FEW, "other rooms need another generator.VERSION"


# --- other recipes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("recipe", "count"),
    [
        (Recipe(7, 9, 1, (0.2, 0.6), (3, 15)), 30),
        (Recipe(9, 5, 2, (0.0, 0.5), (4, 12)), 30),
        (Recipe(6, 6, 2, (0.2, 0.6), (1, 5)), 30),
        (Recipe(6, 6, 3, (0.2, 0.3), (10, 15)), 30),
        (Recipe(8, 8, 2, (0.5, 0.6), (3, 15)), 10),
        (Recipe(4, 12, 1, (0.0, 0.3), (3, 15)), 30),
        (Recipe(7, 6, 1, (0.3, 0.3), (15, 15)), 10),
        (Recipe(8, 9, 3, (0.4, 0.6), (8, 18)), 4),
        (Recipe(10, 10, 4, (0.3, 0.6), (3, 25)), 2),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_other_recipes(recipe, count):
    inner = (recipe.height - 2) * (recipe.width - 2)
    low, high = recipe.walls
    plans = {}
    for split in ("train", "valid"):
        rooms = make_rooms(recipe, split, count)
        assert len({canonical(rows_of(made)) for made in rooms}) == count
        plans[split] = {canonical(plan_of(rows_of(made))) for made in rooms}
        for made in rooms:
            assert_well_formed(made, recipe)
            assert recipe.moves[0] <= made.moves <= recipe.moves[1]
            assert solver.distance(State(made.room())) == made.moves
            walls = made.tiles.count(WALL) - (recipe.height * recipe.width - inner)
            assert low - 1e-9 <= walls / inner <= high + 1e-9
        if recipe.num_masks <= 1_000:
            for made in rooms[:10]:
                assert search(*read(rows_of(made))) == made.moves
    assert not plans["train"] & plans["valid"]


def test_lengths_are_spread_over_the_range():
    rooms = make_rooms(Recipe(7, 7, 2, (0.2, 0.6), (5, 14)), "train", 300)
    seen = [made.moves for made in rooms]
    assert set(seen) == set(range(5, 15))
    assert min(seen.count(moves) for moves in range(5, 15)) >= 10


def test_the_default_difficulty_follows_the_turn_limit():
    for max_turns, longest in ((2, 2), (4, 4), (8, 8), (40, 15)):
        env = make(max_turns=max_turns, rooms=50, oracle=True, split="train")
        lengths = set()
        for task_id in env.tasks:
            _, info = env.reset(options={"task_id": task_id})
            lengths.add(json.loads(info["oracle"])["optimal_remaining"])
        assert max(lengths) <= longest
        assert min(lengths) >= min(3, max_turns)


def test_a_tenth_of_the_rooms_is_in_valid_and_test():
    for rooms, tenth in ((35, 3), (4, 1)):
        counts = [len(make(split=split, rooms=rooms).tasks) for split in ("train", "valid", "test")]
        assert counts == [rooms, tenth, tenth]
    assert len(make(split="sample", rooms=4).tasks) == 4


@pytest.mark.parametrize(
    "arguments",
    [
        {"size": [4, 5], "rooms": 500},
        {"size": 5, "rooms": 5_000},
        {"size": 6, "walls": 0.75, "rooms": 500},
    ],
)
def test_rooms_that_do_not_exist(arguments):
    count = arguments["rooms"]
    hint = rf"only \d+ of {count} rooms .* 'train': ask for fewer \(rooms=\), or widen difficulty"
    with pytest.raises(BadOption, match=hint):
        make(**arguments).reset(seed=0)


def test_many_threads_share_one_generation(monkeypatch):
    calls = []
    monkeypatch.setattr(
        generator, "make_rooms", lambda *a, **k: calls.append(a) or make_rooms(*a, **k)
    )
    with ThreadPoolExecutor(8) as pool:
        envs = list(pool.map(lambda _: make(rooms=70, walls=0.31), range(8)))
        assert len(set(pool.map(lambda env: env.reset(seed=1)[1]["state_key"], envs))) == 1
    assert len(calls) == 1


def test_what_would_take_a_machine_down_is_refused():
    for arguments, message in (
        ({"rooms": 10**9}, "rooms must be a whole number from 1 to 100000"),
        ({"difficulty": [1, 10_000], "max_turns": 10_000}, "at most 500 and max_turns=10000"),
    ):
        with pytest.raises(BadOption, match=message):
            make(size=10, boxes=3, **arguments)


def test_a_search_that_grows_too_large_is_given_up(monkeypatch):
    room = make_rooms(Recipe(10, 10, 4, (0.1, 0.3), (20, 60)), "train", 1)[0].room()
    assert solver.distance(State(room)) >= 20
    solver._search.cache_clear()
    monkeypatch.setattr(solver, "_MAX_MASKS", 50)
    assert solver.distance(State(room)) == solver.UNKNOWN
    assert solver.best_action(State(room)) == ""
    solver._search.cache_clear()
