"""Keys of our ScienceWorld have all state: by changes of it, and by the tables."""

import ast
import importlib
import inspect
import pkgutil

import pytest
from own_states import TASKS, after, living, start, things

from agentgyms.envs.scienceworld import own
from agentgyms.envs.scienceworld.own.game import Game
from agentgyms.envs.scienceworld.own.goals.base import Goal
from agentgyms.envs.scienceworld.own.keys import attributes, state_bytes
from agentgyms.envs.scienceworld.own.keys.layouts import (
    class_code,
    class_names,
    layout_of,
    slots_of,
)
from agentgyms.envs.scienceworld.own.objects.base import EnvObject
from agentgyms.envs.scienceworld.own.objects.tree import TreeNode
from agentgyms.envs.scienceworld.own.properties import materials
from agentgyms.envs.scienceworld.own.properties.material import MaterialProperties
from agentgyms.envs.scienceworld.own.sets import ObjectSet

NOT_OF_A_GAME = {
    # what one turn or one solution needs only
    *("Engine", "FrozenSet", "InputMatch", "MutableMap", "Names", "Sight", "_Heard"),
    # past actions, commands, and what a variation is made of
    *("Action", "Command", "Context", "AnimalCycle", "Task", "Notes", "TaskParametric"),
    *("TaskObject", "TaskDisable", "TaskValue", "MoveableProperties"),
}


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
