"""TextCraft: craft an item from others by recipes, as in a well-known game of blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from agentgyms.core import keys
from agentgyms.core.env import Feedback, Outcome
from agentgyms.core.errors import BadOption
from agentgyms.core.tasks import Task
from agentgyms.core.tools import Argument, Tool, Tools
from agentgyms.envs.games.boards import Board
from agentgyms.envs.games.game import Game
from agentgyms.envs.games.textcraft import official, worlds
from agentgyms.envs.games.textcraft.book import (
    Book,
    Done,
    Inventory,
    Recipe,
    command_of,
    words_of,
)
from agentgyms.envs.games.textcraft.menu import Menu
from agentgyms.envs.games.textcraft.plans import Course, plan
from agentgyms.exact import Transition

_SOURCES: Final = ("generated", "official")


class TextCraftEnv(Game):
    """Craft an item; what it is made of must be crafted or fetched first.

    The actions are `get 2 oak log`, `craft 4 plank using 1 oak log` and `inventory`. What no recipe
    makes lies around, in any amount. A recipe may ask for any item of a group, such as `dyes`; a
    command names the item itself. The number of things to craft is the recipe's, whatever the
    command says. The reward is 1 when the goal is crafted, which ends the episode, else 0.

    | argument | default | meaning |
    |---|---|---|
    | `split` | `"train"` | `train`, `valid_seen`, `valid_unseen` (one level deeper), `sample` |
    | `source` | `"generated"` | recipes of the task's own; `"official"`: the package's |
    | `depth` | 3 | the most levels of crafting in `train` and `valid_seen`, from 2 to 4 |
    | `max_turns` | 40 | turns until the episode is truncated |
    | `oracle` | `False` | put the next command of a shortest plan into `info["oracle"]` |

    The first text has the recipes of the task and others that are of no use, and the goal; later
    ones answer the command. `info["admissible_actions"]` has `inventory`, the crafts that are
    possible, and `get` with the amounts that the recipes name; other amounts work too, so it is not
    complete. Amounts have six digits at most. `info["state_key"]` is that of what is carried, in
    any order. `info["progress"]` is the done share of the commands of a
    shortest plan from the start.

    With `source="official"` a family is the depth of the goal; goals of one depth are in `train` or
    `valid_seen`, those of depth 4 in `valid_unseen`. It needs the package.
    """

    default_max_turns = 40
    long_boards = True
    words = ("get", "craft", "inventory")
    tools = Tools(
        Tool(
            "get",
            "Take things that lie around.",
            "get {amount} {item}",
            {"amount": Argument("How many.", "integer"), "item": "What to take."},
        ),
        Tool(
            "craft",
            "Craft by one of the recipes.",
            "craft {item} using {ingredients}",
            {
                "item": "What to craft, such as: 4 plank.",
                "ingredients": "What it is made of, such as: 1 oak log, 2 nail.",
            },
        ),
        Tool("inventory", "List what you carry.", "inventory"),
    )

    def __init__(self, *, source: str = "generated", depth: int = 3, **common: Any) -> None:
        """Check the arguments; see the class for their meaning.

        Raises `BadOption`, and `DependencyNotInstalled` if the package is missing.
        """
        super().__init__(**common)
        if source not in _SOURCES:
            raise BadOption(f"source {source!r} is unknown: expected one of {', '.join(_SOURCES)}")
        if type(depth) is not int or not 2 <= depth <= 4:
            raise BadOption(f"depth must be from 2 to 4, got {depth!r}")
        self._source, self._depth = source, depth
        self.data_version = f"{source}-1"
        if source == "official":
            official.book()

    @classmethod
    def data_source_of(cls, arguments: Any) -> str:
        """Return `"generated"` or `"official"`, the argument `source`."""
        return str(arguments.get("source", "generated"))

    def deal(self, number: int, unseen: bool) -> Board:
        """Return the task of a number."""
        deal = worlds.official if self._source == "official" else worlds.generated
        return deal(number, self._depth, unseen)

    def goal(self, task: Task) -> str:
        """Return the task in words."""
        return f"craft {words_of(self._wanted)}"

    def _lay(self, board: Any) -> None:
        super()._lay(board)
        self._wanted, self._shown, _ = board
        whole = self._source == "official"
        self._book: Book = official.book() if whole else worlds.book_of(board)
        self._menu, self._fetches = _menu(self._book, self._shown)
        self._course = _course(self._book, self._wanted)

    def start(self) -> Inventory:
        """Return an empty inventory."""
        return ()

    def begin(self, task: Task, rng: np.random.Generator) -> Outcome:
        """Start with nothing; the first text has the recipes."""
        super().begin(task, rng)
        recipes = "\n".join(map(command_of, self._shown))
        told = "".join(f"\n{line}" for line in worlds.groups_told(self.board))
        text = f"Crafting commands:\n{recipes}\n{told}\nGoal: {self.goal(task)}."
        return self._answer(Done(text, ()))

    def act(self, action: str) -> Outcome:
        """Do a command."""
        self._turn += 1
        done = self._book.do(self._state, action.strip())
        if done.name not in ("", "inventory") and done.inventory == self._state:
            done = done._replace(feedback=Feedback.NO_EFFECT)
        self._state = done.inventory
        return self._answer(done)

    def _answer(self, done: Done) -> Outcome:
        state, solved = self._state, done.made == self._wanted
        failed = not done.name and self._turn > 0
        name, reason = (keys.INVALID_ACTION, done.message) if failed else (done.name, "")
        # no `_face`: an inventory hardly ever comes again
        held = dict(state)
        return Outcome(
            done.message, self.key_of(state), float(solved), solved, False, self._listed(held),
            False, name, done.feedback, reason, self._share(held), float(solved), solved,
        )  # fmt: skip

    # --- the rules as functions of an inventory --------------------------------------------------

    def actions_in(self, state: Inventory) -> Sequence[str]:
        """Return the crafts that are possible, the amounts that recipes name, and `inventory`."""
        return self._listed(dict(state))

    def _listed(self, held: Mapping[str, int]) -> Sequence[str]:
        if self._wanted in held:
            return ()
        return (*self._menu.possible(held), *self._fetches)

    def transitions(self, state: Inventory, action: str) -> Sequence[Transition]:
        """Return what a command leads to."""
        done = self._book.do(state, action)
        solved = done.made == self._wanted
        return (Transition(1.0, done.inventory, float(solved), solved, solved, float(solved)),)

    def text(self, state: Inventory) -> str:
        """Return what is carried."""
        return self._book.do(state, "inventory").message

    def is_state(self, state: Any) -> bool:
        """Return whether a value is an inventory of this world's items."""
        return (
            isinstance(state, tuple)
            and all(
                isinstance(one, tuple)
                and len(one) == 2
                and one[0] in self._book.items
                and type(one[1]) is int
                and one[1] >= 0
                for one in state
            )
            and len({one[0] for one in state}) == len(state)
        )

    def key_of(self, state: Inventory) -> str:
        """Return the key of an inventory, whatever its order."""
        codes, held = _codes(self._book), dict(state)
        return keys.coded_key(self._coded, *[f"{codes[n]}{held[n]}]" for n in sorted(held)])

    def progress(self, state: Inventory) -> float:
        """Return the done share of a shortest plan from the start."""
        return self._share(dict(state))

    def _share(self, held: Mapping[str, int]) -> float:
        if self._wanted in held:
            return 1.0
        whole = self._course.whole
        return max(0, whole - self._course.left(held)) / whole

    # --- the expert ------------------------------------------------------------------------------

    def expert_in(self, state: Inventory, turn: int) -> str:
        """Return the next command of a shortest plan, "" after the end."""
        return next(iter(self._rest(state)), "")

    def optimal_value(self) -> float:
        """Return the most reward that can be expected from here."""
        return float(0 < self.optimal_remaining() <= self.turns_left)

    def optimal_remaining(self) -> int:
        """Return the commands of a shortest plan, 0 after the end."""
        return len(self._rest(self._state))

    def _rest(self, state: Inventory) -> tuple[str, ...]:
        # the goal can only be had by crafting it
        over = self._wanted in dict(state)
        return () if over else _left(self._book, state, self._wanted)


@lru_cache(maxsize=4096)
def _codes(book: Book) -> dict[str, str]:
    """Return what each item's entry in a key begins with, coded."""
    return {item: f"[{keys.coded(item)}," for item in book.items}


@lru_cache(maxsize=1 << 16)
def _left(book: Book, inventory: Inventory, goal: str) -> tuple[str, ...]:
    return plan(book, inventory, goal) or ()


@lru_cache(maxsize=4096)
def _course(book: Book, goal: str) -> Course:
    return Course(book, goal)


@lru_cache(maxsize=4096)
def _menu(book: Book, recipes: tuple[Recipe, ...]) -> tuple[Menu, tuple[str, ...]]:
    """Return the crafts by the recipes; the commands that fetch their parts, and `inventory`."""
    parts = {(name, count) for recipe in recipes for name, count in recipe.inputs}
    gets = [f"get {count} {words_of(name)}" for name, count in sorted(parts) if book.can_get(name)]
    return Menu(book, recipes), (*gets, "inventory")
