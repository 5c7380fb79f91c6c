"""Which crafts are possible with an inventory: what each of them needs is worked out once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from agentgyms.envs.games.textcraft.book import Book, Inventory, Recipe, command_of


class Menu:
    """The commands that recipes allow, in their order, with each choice of their groups' items."""

    def __init__(self, book: Book, recipes: Sequence[Recipe]) -> None:
        self._needing: dict[str, list[tuple[int, Inventory, str]]] = {}
        every = [craft for recipe in recipes for craft in _crafts(book, recipe)]
        for number, (needs, command) in enumerate(every):
            self._needing.setdefault(needs[0][0], []).append((number, needs, command))

    def possible(self, held: Mapping[str, int]) -> list[str]:
        """Return the commands that make something of what is held."""
        found = []
        for item in held:
            for number, needs, command in self._needing.get(item, ()):
                if _has(held, needs):
                    found.append((number, command))
        return [command for _, command in sorted(found)]


def _has(held: Mapping[str, int], needs: Inventory) -> bool:
    for name, count in needs:  # noqa: SIM110 (all() takes twice as long, thousands of times)
        if held.get(name, 0) < count:
            return False
    return True


def _crafts(book: Book, recipe: Recipe) -> Iterator[tuple[Inventory, str]]:
    """Yield what each way to use a recipe needs, and its command."""
    if book.groups.isdisjoint([name for name, _ in recipe.inputs]):
        yield recipe.inputs, command_of(recipe)
        return
    choices = [
        book.members.get(name, (name,)) if name in book.groups else (name,)
        for name, _ in recipe.inputs
    ]
    for names in product(*choices):
        given = tuple(zip(names, (count for _, count in recipe.inputs), strict=True))
        needs: dict[str, int] = {}
        for name, count in given:
            needs[name] = needs.get(name, 0) + count
        command = command_of(recipe, given)
        if book.do(tuple(needs.items()), command).made:
            yield tuple(needs.items()), command
