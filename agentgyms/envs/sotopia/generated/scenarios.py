"""Generated encounters: the tasks of each split, and the encounter of each id."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from agentgyms.core.errors import UnknownTask
from agentgyms.core.randomness import Chance
from agentgyms.core.tasks import Task, check_split
from agentgyms.envs.sotopia.generated import bargaining, contact, division
from agentgyms.envs.sotopia.generated.bargaining import Bargaining
from agentgyms.envs.sotopia.generated.contact import Contact
from agentgyms.envs.sotopia.generated.division import Division
from agentgyms.envs.sotopia.generated.people import draw_pair
from agentgyms.envs.sotopia.profiles import Encounter, Relationship, Scenario

VERSION: Final = "1"
"""Increase it with any change of the generated encounters."""

FAMILIES: Final = ("bargaining", "division", "contact")
SPLITS: Final = ("train", "valid", "test", "sample")

AnyGame = Bargaining | Division | Contact

_NUM_COMBINATIONS: Final = {"train": 1000, "valid": 100, "test": 100, "sample": 6}
_SPLIT_WEIGHTS: Final = ("train",) * 6 + ("valid", "valid", "test", "test", "test", "sample")
_DRAW: Final[Mapping[str, Callable[[Chance], AnyGame]]] = {
    "bargaining": bargaining.draw,
    "division": division.draw,
    "contact": contact.draw,
}
_RELATIONSHIPS: Final = {
    "bargaining": (Relationship.STRANGER,),
    "division": (Relationship.ACQUAINTANCE, Relationship.FRIEND),
    "contact": (Relationship.STRANGER, Relationship.KNOW_BY_NAME),
}
_TASK: Final = re.compile(r"(train|valid|test|sample)-(\d{4})-(bargaining|division|contact)/([01])")
_CACHE_SIZE: Final = 512  # two kB each


def task_ids(split: str) -> list[Task]:
    """Return the tasks of a split: every combination with the learner at seat 0 and at seat 1."""
    check_split(split, SPLITS, "generated SOTOPIA")
    return [
        Task(f"{_pk(split, number)}/{seat}", _family(number))
        for number in range(_NUM_COMBINATIONS[split])
        for seat in (0, 1)
    ]


@lru_cache(maxsize=_CACHE_SIZE)
def encounter(task_id: str) -> Encounter:
    """Return the encounter of a task, a function of the id."""
    found = _TASK.fullmatch(task_id)
    if not found or task_id != f"{_known_pk(found[1], int(found[2]))}/{found[4]}":
        raise UnknownTask(
            f"generated SOTOPIA has no task {task_id!r}: expected an id such as"
            " 'train-0000-bargaining/0'"
        )
    split, family = found[1], found[3]
    name = f"{split}-{found[2]}-{family}"
    chance = Chance("sotopia", VERSION, name)
    people = draw_pair(chance, name)
    game = draw_game(chance, family, split)
    scenario = Scenario(
        scenario_id=name,
        codename=f"{family}_{found[2]}",
        source=family,
        text=game.text,
        goals=(game.goal(0), game.goal(1)),
        relationship=chance.pick(_RELATIONSHIPS[family]),
    )
    return Encounter(task_id, scenario, people, int(found[4]), game=game)


def draw_game(chance: Chance, family: str, split: str) -> AnyGame:
    """Return a random game of a family whose numbers belong to a split."""
    while True:
        game = _DRAW[family](chance)
        if split_of(game) == split:
            return game


def split_of(game: AnyGame) -> str:
    """Return the split of a game, a function of its numbers or tables."""
    return Chance("sotopia split", *map(repr, game.signature)).pick(_SPLIT_WEIGHTS)


def _family(number: int) -> str:
    return FAMILIES[number % len(FAMILIES)]


def _pk(split: str, number: int) -> str:
    return f"{split}-{number:04}-{_family(number)}"


def _known_pk(split: str, number: int) -> str:
    return _pk(split, number) if number < _NUM_COMBINATIONS[split] else ""
