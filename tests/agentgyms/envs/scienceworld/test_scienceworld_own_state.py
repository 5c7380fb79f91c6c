"""Keys and forks of our ScienceWorld: what is in them, what is not, and that futures agree."""

import copy
import os
import random
import subprocess
import sys

import pytest
from own_states import TASKS, after, living, start, things, wander

from agentgyms.envs.scienceworld.own.game import Game
from agentgyms.envs.scienceworld.own.keys import attributes, digest, state_bytes
from agentgyms.envs.scienceworld.own.keys.past import may_be_called

# --- forks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_a_fork_plays_on_alike(task):
    game = start(task, variation=1)
    wander(game, random.Random(task), 15)
    twin = game.fork()
    assert state_bytes(twin) == state_bytes(game)
    assert (twin.score, twin.completed, twin.moves) == (game.score, game.completed, game.moves)
    assert twin.action_history() == game.action_history()
    before = state_bytes(game)
    said = wander(twin, random.Random(1), 30)
    assert state_bytes(game) == before
    for command, told in said:
        assert game.step(command) == told
    assert state_bytes(twin) == state_bytes(game)
    assert twin.goal_progress() == game.goal_progress()
    assert twin.valid_actions() == game.valid_actions()


def test_a_fork_shares_no_object_that_changes():
    game = after("open door to kitchen", "pick up orange", "focus on orange", "wait")
    twin = game.fork()
    ours, theirs = things(game), things(twin)
    assert len(ours) == len(theirs)
    for mine, yours in zip(ours, theirs, strict=True):
        assert type(mine) is type(yours)
        assert mine is not yours
        assert yours.world is twin.world
        assert mine.uuid == yours.uuid
        for name in attributes.PARTS:
            part = getattr(mine, name, None)
            if part is not None and name != "prop_chromosome_pairs":
                assert getattr(yours, name) is not part, name


def test_a_fork_keeps_the_second_names_of_parts():
    twin = start("mendelian-genetics-known-plant").fork()
    named = [
        (getattr(obj, alias), getattr(obj, name))
        for obj in things(twin)
        for alias, name in attributes.ALIASES.items()
        if hasattr(obj, alias)
    ]
    assert named
    assert all(second is first for second, first in named)


def test_a_fork_has_the_open_question():
    game = after("open door", simplifications="")
    twin = game.fork()
    assert twin.is_in_ambiguous_state()
    assert twin.valid_actions() == game.valid_actions()
    assert state_bytes(twin) == state_bytes(game)
    assert twin.step("1") == game.step("1")
    assert state_bytes(twin) == state_bytes(game)
    assert not game.fork().is_in_ambiguous_state()


def test_a_fork_finds_the_solution():
    game = Game("boil", 0)
    assert game.fork().gold_actions() == game.gold_actions()


def test_deep_copies_have_equal_keys():
    game = after("wait", "pick up orange", task="grow-plant")
    assert state_bytes(copy.deepcopy(game)) == state_bytes(game)


def test_keys_are_the_same_in_other_processes():
    program = (
        "from agentgyms.envs.scienceworld.own.game import Game\n"
        "from agentgyms.envs.scienceworld.own.keys import digest\n"
        "game = Game('grow-plant', 0)\ngame.step('wait1')\nprint(digest(game))"
    )
    game = Game("grow-plant", 0)
    game.step("wait1")
    told = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.strip() == digest(game)


# --- equal keys ----------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["look around", "inventory", "task", "help", "look at door"])
def test_what_takes_no_time_keeps_the_key(command):
    game = after("wait1", task="use-thermometer")
    key, moves = state_bytes(game), game.moves
    game.step(command)
    assert game.moves == moves
    if not game.is_in_ambiguous_state():
        assert state_bytes(game) == key


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (["open door to kitchen", "open door to workshop"], None),
        (["focus on agent", "open door to kitchen"], None),
        (["open door to kitchen", "close door to kitchen"], ["wait1"]),
        (
            ["open door to bedroom", "go to bedroom", "go to hallway"],
            ["open door to bedroom", "wait1"],
        ),
        (["wait1", "look around", "nonsense", "open door", "5"], ["wait1", "open art studio door"]),
    ],
)
def test_ways_to_one_state_give_one_key(first, second):
    games = [after(*way, simplifications="") for way in (first, second or first[::-1])]
    assert games[0].moves == games[1].moves
    assert games[0].action_history() != games[1].action_history()
    assert state_bytes(games[0]) == state_bytes(games[1])
    assert wander(games[0], random.Random(3), 5) == wander(games[1], random.Random(3), 5)


def test_the_key_forgets_what_decides_nothing():
    game = after("wait1", task="grow-plant")
    key = state_bytes(game)
    game.moves += 3
    game.score = 0.25
    game._history.append("wait")
    game.world.turn += 1
    game.world.count += 1
    for obj in things(game):
        obj._ticking = None
        obj.uuid += 1000
        if obj._contained is not None:
            obj._contained._shown = None
        obj.deleted = True
    assert state_bytes(game) == key


# --- past actions --------------------------------------------------------------------------------


def test_past_actions_count_where_a_goal_looks_for_them():
    game = start("chemistry-mix", simplifications="")
    recipe = next(obj for obj in things(game) if obj.name == "recipe")
    game.agent.container().add_object(recipe)
    game.step("pick up recipe")
    twin = game.fork()
    game.step("read recipe"), twin.step("look around")
    assert twin.fork().goal_progress() == twin.goal_progress()
    assert state_bytes(twin) != state_bytes(game)
    game.step("reset task"), twin.step("reset task")
    assert state_bytes(twin) != state_bytes(game)
    assert state_bytes(game.fork()) == state_bytes(game)


def test_names_that_a_thing_may_have():
    game = start("grow-plant")
    orange = next(iter(game.agent.inventory.contained_objects_not_hidden()))
    assert may_be_called(orange, "orange")
    assert may_be_called(orange, "burned orange")
    assert not may_be_called(orange, "recipe")
    assert may_be_called(living(game), "recipe")
