"""The shortest plan for a goal: which recipes to use how often, and what to fetch for them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import product
from typing import Final, NamedTuple

from agentgyms.envs.games.textcraft.book import Book, Inventory, Recipe, command_of, words_of

_MOST_NODES: Final = 20_000
"""The partial plans after which a search gives up."""


class TooManyPlans(RuntimeError):
    """There are more ways to a goal than can be compared."""


class Use(NamedTuple):
    """One use of a recipe, with the items that it takes."""

    recipe: Recipe
    taken: tuple[tuple[str, int], ...]


def plan(book: Book, inventory: Inventory, goal: str) -> tuple[str, ...] | None:
    """Return the fewest commands that craft `goal`, None if none do; raise `TooManyPlans`."""
    search = _Search(book, dict(inventory), goal)
    search.go({goal: 1}, [], 0)
    if search.best is None:
        return None
    uses, fetched = search.best
    fetches = [f"get {amount} {words_of(name)}" for name, amount in fetched.items()]
    return (*fetches, *(command_of(use.recipe, use.taken) for use in reversed(uses)))


class Course:
    """The recipes of a shortest plan from nothing, the goal's first; `left` needs no search."""

    def __init__(self, book: Book, goal: str) -> None:
        search = _Search(book, {}, goal)
        search.go({goal: 1}, [], 0)
        if search.best is None:
            raise ValueError(f"nothing crafts {goal}")
        uses, fetched = search.best
        self.whole = len(uses) + len(fetched)
        self._uses = list({use.recipe.item: use for use in reversed(uses)}.values())[::-1]
        self._goal = goal

    def left(self, held: Mapping[str, int]) -> int:
        """Return the commands that are left with an inventory, by these recipes."""
        needs, crafts = {self._goal: 1}, 0
        for (item, amount, _), taken in self._uses:
            need = needs.pop(item, 0)
            if need > 0:
                times = -(-need // amount)
                crafts += times
                for name, count in taken:
                    needs[name] = needs.get(name, -held.get(name, 0)) + count * times
        return crafts + sum([count > 0 for count in needs.values()])


class _Search:
    """Goes from the goal down: an item comes after all that it is a part of, so its need is whole.

    A plan is as long as its crafts and the different items that it fetches: one command fetches any
    amount.
    """

    def __init__(self, book: Book, held: Mapping[str, int], goal: str) -> None:
        self.book, self.held, self.goal = book, held, goal
        self.ranks = ranks(book, goal)
        self.best: tuple[list[Use], dict[str, int]] | None = None
        self.length, self.nodes = 10**9, 0

    def go(self, needs: dict[str, int], uses: list[Use], first: int) -> None:
        """Try every way to make what is needed; `first` is the first use to try for the item."""
        self.nodes += 1
        if self.nodes > _MOST_NODES:
            raise TooManyPlans(f"there are too many ways to craft {self.goal}")
        missing = {n: c for n, c in needs.items() if c > 0}
        made = [name for name in missing if name in self.book.of]
        crafts = sum(-(-missing[n] // max(r.amount for r in self.book.of[n])) for n in made)
        if len(uses) + len(missing) - len(made) + crafts >= self.length:
            return
        if any(not self.book.can_get(name) for name in missing if name not in made):
            return
        if not made:
            self.best, self.length = ([*uses], missing), len(uses) + len(missing)
            return
        item = max(made, key=lambda name: (self.ranks.get(name, 0), name))
        first = first if uses and uses[-1].recipe.item == item else 0
        for number, use in enumerate(ways(self.book, item, self.goal)[first:], start=first):
            after = {**needs, item: needs[item] - use.recipe.amount}
            for name, count in use.taken:
                after[name] = after.get(name, -self.held.get(name, 0)) + count
            self.go(after, [*uses, use], number)


@lru_cache(maxsize=4096)
def ways(book: Book, item: str, goal: str) -> tuple[Use, ...]:
    """Return all ways to make an item once: recipes, with each member of their groups.

    A recipe that needs the item itself, through a group, is left out: so ranks have an order.
    """
    found = []
    rank = ranks(book, goal)
    for recipe in book.of[item]:
        names = [
            [one for one in book.members.get(name, ()) if rank.get(one, 0) < rank[item]]
            if name in book.groups
            else [name]
            for name, _ in recipe.inputs
        ]
        counts = [count for _, count in recipe.inputs]
        for chosen in product(*names):
            taken = tuple(zip(chosen, counts, strict=True))
            if len(set(chosen)) == len(chosen):
                found.append(Use(recipe, taken))
    return tuple(found)


@lru_cache(maxsize=4096)
def ranks(book: Book, goal: str) -> dict[str, int]:
    """Return for all that `goal` may be made of the longest way down to what lies around."""
    found: dict[str, int] = {}
    above: set[str] = set()

    def rank(item: str) -> int:
        if item not in found:
            above.add(item)
            parts = {
                one
                for recipe in book.of.get(item, ())
                for name, _ in recipe.inputs
                for one in (book.members.get(name, ()) if name in book.groups else (name,))
            }
            below = [rank(one) for one in sorted(parts - above)]
            above.discard(item)
            found[item] = 1 + max(below) if below else int(item in book.of)
        return found[item]

    rank(goal)
    return found
