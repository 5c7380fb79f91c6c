"""Invented characters."""

from __future__ import annotations

from agentgyms.core.randomness import Chance
from agentgyms.envs.sotopia.generated.words import word_list
from agentgyms.envs.sotopia.profiles import Person


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
