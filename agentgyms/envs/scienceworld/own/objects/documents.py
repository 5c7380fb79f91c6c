"""Documents: papers, recipes and books."""

from __future__ import annotations

from agentgyms.envs.scienceworld.own.objects.base import MODE_CURSORY_DETAIL, EnvObject
from agentgyms.envs.scienceworld.own.objects.excerpts import EXCERPTS, Excerpt
from agentgyms.envs.scienceworld.own.properties.container import IsNotContainer
from agentgyms.envs.scienceworld.own.properties.materials import PaperProp
from agentgyms.envs.scienceworld.own.sets import FrozenSet
from agentgyms.envs.scienceworld.own.world import World

_BLANK = "The paper does not have any text on it."


class Document(EnvObject):
    """A thing to read.

    Attributes:
        title: The title of the text.
        contents: The text.
    """

    def __init__(self, world: World) -> None:
        """Make an empty document."""
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
        """Make a blank paper."""
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
        """Make a paper of the color."""
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
        """Make an empty recipe."""
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
    """A book.

    Attributes:
        author: The name of who wrote it.
    """

    def __init__(self, world: World, excerpt: Excerpt | None = None) -> None:
        """Make the book of an excerpt, or a sample."""
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
