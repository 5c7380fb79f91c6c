"""Generated encounters: the tasks of each split, the encounter of each id, and its people."""

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
from agentgyms.envs.sotopia.generated.words import word_list
from agentgyms.envs.sotopia.profiles import Encounter, Person, Relationship, Scenario

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


def draw_pair(chance: Chance, name: str) -> tuple[Person, Person]:
    """Return two people with different first and last names; `name` is a part of their ids."""
    lasts = chance.sample(word_list("people", "last"), 2)
    women = [bool(chance.below(2)) for _ in lasts]
    pool = {True: word_list("people", "women"), False: word_list("people", "men")}
    firsts: list[str] = []
    for woman in women:
        firsts.append(chance.pick([first for first in pool[woman] if first not in firsts]))
    infos = chance.sample(word_list("people", "infos"), 2)
    first, second = (
        _draw(chance, f"{name}-{seat}", firsts[seat], lasts[seat], women[seat], infos[seat])
        for seat in (0, 1)
    )
    return first, second


def _draw(chance: Chance, person_id: str, first: str, last: str, woman: bool, info: str) -> Person:
    one, other = chance.sample(word_list("people", "traits"), 2)
    return Person(
        person_id=person_id,
        first_name=first,
        last_name=last,
        age=chance.between(21, 69),
        occupation=chance.pick(word_list("people", "occupations")),
        gender="Woman" if woman else "Man",
        gender_pronoun="She/her" if woman else "He/him",
        public_info=f"{first} {info}.",
        personality_and_values=f"{one.capitalize()} and {other}.",
        secret=f"{first} {chance.pick(word_list('people', 'secrets'))}.",
    )
