"""Documents: papers, recipes and books."""

from __future__ import annotations

from typing import Final, NamedTuple

from agentgyms.envs.scienceworld.own.objects.base import MODE_CURSORY_DETAIL, EnvObject
from agentgyms.envs.scienceworld.own.properties.container import IsNotContainer
from agentgyms.envs.scienceworld.own.properties.materials import PaperProp
from agentgyms.envs.scienceworld.own.sets import FrozenSet
from agentgyms.envs.scienceworld.own.world import World

_BLANK: Final = "The paper does not have any text on it."


class Document(EnvObject):
    """A thing to read."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.name = "document"
        self.title = ""
        self.contents = ""
        self.prop_material = PaperProp()
        self.prop_container = IsNotContainer()

    def read_document(self) -> str:
        """Return what a reader sees."""
        return f"{self.title}\n{self.contents}"

    def referents(self) -> FrozenSet[str]:
        """Return the names that a command may use."""
        name = self.descript_name()
        return FrozenSet.of(
            self.name,
            self.title,
            f"{self.name} called {self.title}",
            name,
            f"{name} called {self.title}",
        )

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Describe the document by its title."""
        return f"A {self.descript_name()} titled {self.title}"


class Paper(Document):
    """A paper, which may be blank."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.name = "paper"

    def read_document(self) -> str:
        """Return what a reader sees."""
        if not self.contents:
            return _BLANK
        return f"The paper reads:\n{self.title}\n{self.contents}"

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Describe the paper by its title, or as blank."""
        if self.title:
            return super().description(mode)
        return f"A blank {self.descript_name()}"


class ColoredPaper(Document):
    """A colored paper without a text."""

    def __init__(self, world: World, color_name: str) -> None:
        super().__init__(world)
        self.name = f"{color_name} paper"

    def read_document(self) -> str:
        """Return what a reader sees."""
        return _BLANK

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Describe the paper."""
        return f"A {self.descript_name()}"


class Recipe(Document):
    """A recipe for a mixture."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.name = "recipe"

    @staticmethod
    def mk_recipe(world: World, product_name: str, things_to_mix: list[str]) -> Recipe:
        """Return the recipe of a product."""
        recipe = Recipe(world)
        recipe.title = f"instructions to make {product_name}"
        mixed = ", ".join(things_to_mix)
        recipe.contents = f"To make {product_name}, you need to mix {mixed}."
        return recipe

    def read_document(self) -> str:
        """Return what a reader sees, which lacks the title."""
        return f"The recipe reads:\n{self.contents}"


class Book(Document):
    """A book."""

    def __init__(self, world: World, excerpt: Excerpt | None = None) -> None:
        super().__init__(world)
        if excerpt is None:
            self.title, self.author, self.contents = "title", "author", "contents"
            self.name = f"{self.title} by {self.author}"
        else:
            self.title, self.author, self.contents = excerpt
            self.name = f"book ({self.title})"

    @staticmethod
    def mk_random(world: World) -> Book:
        """Return one of the books; the engine draws from ten numbers until it has one of six."""
        while True:
            drawn = world.random.next_int(10)
            if drawn < len(EXCERPTS):
                return Book(world, EXCERPTS[drawn])

    def read_document(self) -> str:
        """Return what a reader sees."""
        return f"The book reads:\n{self.title} by {self.author}\n{self.contents}"

    def referents(self) -> FrozenSet[str]:
        """Return the names that a command may use."""
        name = self.descript_name()
        return FrozenSet.of(
            "book",
            self.title,
            f"book by {self.author}",
            f"{self.title} book",
            self.name,
            name,
            f"{name} by {self.author}",
            f"{name} called {self.title}",
        )

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Describe the book by its title and author."""
        return f"{super().description(mode)} by {self.author}"


class Excerpt(NamedTuple):
    """An excerpt of a book."""

    title: str
    author: str
    contents: str


EXCERPTS: Final = (
    Excerpt(
        "Moby Dick",
        "Herman Melville",
        (  # the engine has it twice
            "Call me Ishmael. Some years ago—never mind how long precisely—having little "
            "or no money in my purse, and nothing particular to interest me on shore, I "
            "thought I would sail about a little and see the watery part of the world. It "
            "is a way I have of driving off the spleen and regulating the circulation. "
            "Whenever I find myself growing grim about the mouth; whenever it is a damp, "
            "drizzly November in my soul; whenever I find myself involuntarily pausing "
            "before coffin warehouses, and bringing up the rear of every funeral I meet; "
            "and especially whenever my hypos get such an upper hand of me, that it "
            "requires a strong moral principle to prevent me from deliberately stepping "
            "into the street, and methodically knocking people\u2019s hats off—then, I account "
            "it high time to get to sea as soon as I can. "
        )
        * 2,
    ),
    Excerpt(
        "Frankenstein",
        "Mary Wollstonecraft Shelley",
        "You will rejoice to hear that no disaster has accompanied the commencement of "
        "an enterprise which you have regarded with such evil forebodings. I arrived "
        "here yesterday, and my first task is to assure my dear sister of my welfare "
        "and increasing confidence in the success of my undertaking.\n\nI am already far "
        "north of London, and as I walk in the streets of Petersburgh, I feel a cold "
        "northern breeze play upon my cheeks, which braces my nerves and fills me with "
        "delight. Do you understand this feeling? This breeze, which has travelled "
        "from the regions towards which I am advancing, gives me a foretaste of those "
        "icy climes. ",
    ),
    Excerpt(
        "Sherlock Holmes",
        "Arthur Conan Doyle",
        "To Sherlock Holmes she is always the woman. I have seldom heard him mention "
        "her under any other name. In his eyes she eclipses and predominates the whole "
        "of her sex. It was not that he felt any emotion akin to love for Irene Adler. "
        "All emotions, and that one particularly, were abhorrent to his cold, precise "
        "but admirably balanced mind. He was, I take it, the most perfect reasoning "
        "and observing machine that the world has seen, but as a lover he would have "
        "placed himself in a false position. ",
    ),
    Excerpt(
        "Pride and Prejudice",
        "Jane Austen",
        "It is a truth universally acknowledged, that a single man in possession of a "
        "good fortune, must be in want of a wife.\\n\\nHowever little known the feelings "
        "or views of such a man may be on his first entering a neighbourhood, this "
        "truth is so well fixed in the minds of the surrounding families, that he is "
        "considered as the rightful property of some one or other of their "
        "daughters.\\n\\n“My dear Mr. Bennet,” said his lady to him one day, “have you "
        "heard that Netherfield Park is let at last?” ",
    ),
    Excerpt(
        "Beowulf",
        "Beowulf poet",
        "Lo! the Spear-Danes\u2019 glory through splendid achievements\nThe folk-kings\u2019 "
        "former fame we have heard of,\nHow princes displayed then their "
        "prowess-in-battle.\nOft Scyld the Scefing from scathers in numbers\nFrom many a "
        "people their mead-benches tore. ",
    ),
    Excerpt(
        "The Foundations of the Origin of Species",
        "Charles Darwin",
        "I. On Variation under Domestication, and on the Principles of Selection.\nAn "
        "individual organism placed under new conditions sometimes varies in a small "
        "degree and in very trifling respects such as stature, fatness, sometimes "
        "colour, health, habits in animals and probably disposition. Also habits of "
        "life develop certain parts. Disuse atrophies.\nWhen the individual is "
        "multiplied for long periods by buds the variation is yet small, though "
        "greater and occasionally a single bud or individual departs widely from its "
        "type and continues steadily to propagate, by buds, such new kind. ",
    ),
)
"""Excerpts of the books, all in the public domain, in the order of the engine's draw."""
