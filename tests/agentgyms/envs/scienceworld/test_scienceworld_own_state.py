"""Keys and forks of our ScienceWorld: what is in them, what is not, and that futures agree."""

import ast
import copy
import importlib
import inspect
import os
import pkgutil
import random
import subprocess
import sys

import pytest

from agentgyms.envs.scienceworld import own
from agentgyms.envs.scienceworld.own.game import Game
from agentgyms.envs.scienceworld.own.goals.base import Goal
from agentgyms.envs.scienceworld.own.keys import attributes, digest, encoding, state_bytes
from agentgyms.envs.scienceworld.own.keys.layouts import (
    class_code,
    class_names,
    layout_of,
    slots_of,
)
from agentgyms.envs.scienceworld.own.keys.past import may_be_called
from agentgyms.envs.scienceworld.own.life.plants import Plant
from agentgyms.envs.scienceworld.own.objects.base import EnvObject
from agentgyms.envs.scienceworld.own.objects.tree import TreeNode
from agentgyms.envs.scienceworld.own.properties import materials
from agentgyms.envs.scienceworld.own.properties.material import MaterialProperties
from agentgyms.envs.scienceworld.own.sets import ObjectSet

TASKS = [
    "boil",
    "grow-plant",
    "power-component",
    "inclined-plane-determine-angle",
    "use-thermometer",
    "mendelian-genetics-known-plant",
    "chemistry-mix",
]
NOT_OF_A_GAME = {
    # what one turn or one solution needs only
    *("Engine", "FrozenSet", "InputMatch", "MutableMap", "Names", "Sight", "_Heard"),
    # past actions, commands, and what a variation is made of
    *("Action", "Command", "Context", "AnimalCycle", "Task", "Notes", "TaskParametric"),
    *("TaskObject", "TaskDisable", "TaskValue", "MoveableProperties"),
}


def start(task="boil", variation=0, simplifications="easy"):
    """Return a game whose goals have been checked once, as in every game that is played."""
    game = Game(task, variation, simplifications)
    game.step("look around")
    return game


def after(*commands, task="boil", simplifications="easy"):
    game = start(task, 0, simplifications)
    for command in commands:
        game.step(command)
    return game


def wander(game, draw, turns):
    """Play valid actions drawn at random, several of a list; return them with what was said."""
    said = []
    for turn in range(turns):
        if turn % 5 == 0 or game.is_in_ambiguous_state():
            actions = game.valid_actions()
        command = draw.choice(actions)
        said.append((command, game.step(command)))
    return said


def things(game):
    """Return all objects that a key has."""
    numbers = encoding.Numbers()
    number = numbers.__getitem__
    number(game.universe)
    encoding._things(numbers, 0, [])
    return numbers.met


def living(game):
    return next(obj for obj in things(game) if isinstance(obj, Plant))


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


# --- different keys ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "commands", [["wait1"], ["focus on agent"], ["pick up lighter"], ["open door"], ["reset task"]]
)
def test_other_states_have_other_keys(commands):
    others = [after(), after("teleport to workshop"), after("teleport to kitchen", *commands)]
    assert len({state_bytes(game) for game in others}) == len(others)


def test_variations_and_simplifications_are_in_the_key():
    games = [Game("boil", 0), Game("boil", 1), Game("boil", 0, "openDoors"), Game("melt", 0)]
    assert len({state_bytes(game) for game in games}) == len(games)


def test_a_plant_that_is_a_turn_older_has_another_key():
    game = start("grow-plant")
    twin = game.fork()
    plant = living(twin)
    assert state_bytes(twin) == state_bytes(game)
    plant.lifecycle.cur_stage().ticks_meeting_criteria += 1
    assert state_bytes(twin) != state_bytes(game)
    assert state_bytes(twin.fork()) == state_bytes(twin)


def test_the_order_of_a_set_is_in_the_key():
    game = start()
    twin = game.fork()
    inside = list(twin.universe._contained._ring)
    twin.universe._contained = ObjectSet(reversed(inside))
    assert state_bytes(twin) != state_bytes(game)


def _other(value):
    return {bool: lambda v: not v, str: lambda v: v + "!", type(None): lambda v: 7}.get(
        type(value), lambda v: v + 1
    )(value)


def _state_of(game):
    """Return an object of each class with each of its texts, numbers and truth values."""
    found = {}
    last = {type(obj): obj for obj in things(game)}
    for obj in last.values():
        for name in layout_of(obj).plain:
            found[type(obj), name] = (obj, name)
        for part in filter(None, (getattr(obj, name, None) for name in attributes.PARTS)):
            kind = MaterialProperties if isinstance(part, MaterialProperties) else type(part)
            for name in attributes.STATE.get(kind.__name__, ()):
                if isinstance(getattr(part, name), str | bool | int | float | None):
                    found[kind, name] = (part, name)
    return found


@pytest.mark.parametrize("task", ["grow-plant", "inclined-plane-determine-angle"])
def test_all_state_is_in_the_key_and_the_fork(task):
    game = start(task)
    keys = {state_bytes(game)}
    found = _state_of(game)
    assert len(found) > 100
    for obj, name in found.values():
        kept = getattr(obj, name)
        setattr(obj, name, _other(kept))
        key = state_bytes(game)
        assert key not in keys, (type(obj).__name__, name)
        if name in ("temperature_c", "is_open", "combustion_ticks", "_hidden", "is_activated"):
            assert state_bytes(game.fork()) == key, (type(obj).__name__, name)
        keys.add(key)
        setattr(obj, name, kept)


@pytest.mark.parametrize(
    "change",
    [
        lambda game: game.world.random.next_int(2),
        lambda game: game._context.goal_sequence.completed_keys.add("a key"),
        lambda game: game._context.goal_sequence.stored_values.update(stateOfMatter="gas"),
        lambda game: game._context.goal_sequence.reached.__setitem__(0, True),
        lambda game: setattr(game._context.goal_sequence, "failed", True),
        lambda game: setattr(game._context.goal_sequence, "cur_subgoal_idx", 1),
        lambda game: setattr(game._context.goal_sequence, "last_satisfied_with_object", game.agent),
        lambda game: game._context.obj_monitor.add_monitor(game.agent),
        lambda game: setattr(game, "_error", "java.lang.StackOverflowError"),
        lambda game: game.agent.set_wait(3),
        lambda game: setattr(game._parser, "ambiguous", ()),
    ],
)
def test_what_a_game_has_one_of_is_in_the_key_and_the_fork(change):
    game = start()
    key = state_bytes(game)
    change(game)
    assert state_bytes(game) != key
    assert state_bytes(game.fork()) == state_bytes(game)


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


# --- the tables ----------------------------------------------------------------------------------


def _classes():
    """Return the classes of the engine with their source, but for solutions and the keys."""
    found = {}
    for module in pkgutil.walk_packages(own.__path__, f"{own.__name__}."):
        if module.name.removeprefix(f"{own.__name__}.").partition(".")[0] in ("gold", "keys"):
            continue
        loaded = importlib.import_module(module.name)
        for node in ast.parse(inspect.getsource(loaded)).body:
            if isinstance(node, ast.ClassDef):
                found[getattr(loaded, node.name)] = node
    return found


CLASSES = _classes()


def _assigned(kind):
    """Return the attributes that a class's methods set of `self`, with the methods' names."""
    return {
        (node.attr, method.name)
        for method in CLASSES[kind].body
        if isinstance(method, ast.FunctionDef)
        for node in ast.walk(method)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    }


def _without_a_table(kind):
    """Return the attributes of a class that no table has."""
    assigned = _assigned(kind)
    names = {name for name, _ in assigned} | set(slots_of(kind))
    bases = [base.__name__ for base in kind.__mro__]
    if issubclass(kind, TreeNode):
        return names - attributes.FOR_THINGS
    if NOT_OF_A_GAME & set(bases) or issubclass(kind, Exception):
        return set()
    if issubclass(kind, Goal):  # whose other attributes only come from the variation
        names = {name for name, method in assigned if method != "__init__"}
    known = {
        name
        for table in (attributes.STATE, attributes.SAME)
        for base in bases
        for name in table.get(base, ())
    }
    return names - known


def test_the_tables_have_all_attributes():
    assert len(CLASSES) > 300
    assert {kind.__name__: left for kind in CLASSES if (left := _without_a_table(kind))} == {}


def test_a_new_attribute_is_missed():
    class Lamp(EnvObject):
        def __init__(self, world):
            super().__init__(world)
            self.hours = 0

    game = start()
    game.agent.add_object(Lamp(game.world))
    with pytest.raises(NotImplementedError, match="hours of Lamp"):
        state_bytes(game)
    with pytest.raises(NotImplementedError, match="hours of Lamp"):
        game.fork()


@pytest.mark.parametrize("task", TASKS)
def test_all_objects_of_a_class_have_the_same_attributes(task):
    own_names = {}
    for obj in things(start(task)):
        names = frozenset(vars(obj)) - class_names(type(obj)) - set(attributes.NOT_STATE)
        assert own_names.setdefault(type(obj), names) == names, obj


def test_each_class_has_its_own_number():
    materials_made = [kind for kind in vars(materials).values() if inspect.isclass(kind)]
    kinds = {*CLASSES, *materials_made}
    assert len({class_code(kind) for kind in kinds}) == len(kinds)
