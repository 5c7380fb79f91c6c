"""Finding a common contact: two people with tables of contacts that share one person."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Final

from agentgyms.core.randomness import Chance
from agentgyms.envs.sotopia.dialogue import Act, Dialogue
from agentgyms.envs.sotopia.generated.acts import Verb, acts_of, commitment
from agentgyms.envs.sotopia.generated.words import word_list, words_of

FULL: Final = 10
COST: Final = 2
"""Points lost for each wrong contact of its table that a person mentions."""

_NUM_CONTACTS: Final = 5
_NUM_VALUES: Final = 4


@dataclass(frozen=True, slots=True)
class Entry:
    """One contact."""

    name: str
    company: str
    hobby: str

    @property
    def description(self) -> str:
        """Description of the contact without the name."""
        return f"at {self.company} who likes {self.hobby}"

    def fits(self, values: Collection[str]) -> bool:
        """Return whether the contact matches all companies and hobbies among the values."""
        pairs = (("companies", self.company), ("hobbies", self.hobby))
        return all(own in values or not set(values) & set(_values(sort)) for sort, own in pairs)


@dataclass(frozen=True)
class Contact:
    """Two tables of contacts, one for each seat, with one person in both.

    No two contacts have the same company and hobby. Goal: 10 when each seat's last naming
    (`act: name ...`) is the common contact, minus 2 for each other contact in the seat's table that
    the seat has mentioned until then, in speech or act, but at least 1; 0 before.
    """

    tables: tuple[tuple[Entry, ...], tuple[Entry, ...]]

    @cached_property
    def common(self) -> str:
        """The name of the contact in both tables."""
        others = {entry.name for entry in self.tables[1]}
        return next(entry.name for entry in self.tables[0] if entry.name in others)

    @property
    def signature(self) -> tuple[object, ...]:
        """The tables in a canonical order; they decide the split of a game."""
        return tuple(sorted(tuple(sorted(map(repr, table))) for table in self.tables))

    @property
    def text(self) -> str:
        """The situation; only the environment sees the solution in it."""
        return (
            "Two people at a party find out whom both know: exactly one person. Talk is free."
            ' "act: name Ann" names the person that you think it is; both have to name the'
            f' right one.<p viewer="environment"> It is {self.common}.</p>'
        )

    def goal(self, seat: int) -> str:
        """Return a seat's goal with its table."""
        rows = "; ".join(f"{e.name}, {e.company}, {e.hobby}" for e in self.tables[seat])
        return (
            "Find the person whom both of you know. Ask for companies and hobbies: names uttered in"
            f" vain count against you. <extra_info>Your contacts: {rows}.</extra_info>"
        )

    def names(self, seat: int) -> tuple[str, ...]:
        """Return the names of a seat's contacts."""
        return tuple(entry.name for entry in self.tables[seat])

    def last_named(self, dialogue: Dialogue, seat: int) -> str | None:
        """Return the name in a seat's last naming, or None."""
        found = [name for act in acts_of(dialogue, seat) if (name := self.name_in(act))]
        return found[-1] if found else None

    def name_in(self, act: Act) -> str | None:
        """Return the name in an act of naming, else None; any name is allowed."""
        bound = commitment(act)
        if bound is None or bound.verb is not Verb.NAME:
            return None
        words = words_of(bound.rest)
        return words[0].capitalize() if len(words) == 1 else None

    def uttered(self, dialogue: Dialogue, seat: int, whose: int) -> set[str]:
        """Return the names of `whose` contacts that a seat has mentioned."""
        spoken_words = {word for act in acts_of(dialogue, seat) for word in words_of(act.argument)}
        return {name for name in self.names(whose) if name.lower() in spoken_words}

    def agreements(self, dialogue: Dialogue) -> dict[str, int]:
        """Return the names on which both last namings agreed, with the number of turns by then."""
        last: list[str | None] = [None, None]
        found: dict[str, int] = {}
        for number, turn in enumerate(dialogue, 1):
            for seat, act in turn:
                last[seat] = self.name_in(act) or last[seat]
            if last[0] is not None and last[0] == last[1]:
                found.setdefault(last[0], number)
        return found

    def settled(self, dialogue: Dialogue) -> bool:
        """Return whether both have agreed on the common contact; this is final."""
        return self.common in self.agreements(dialogue)

    def goal_score(self, dialogue: Dialogue, seat: int) -> int:
        """Return the goal score, see the class."""
        turns = self.agreements(dialogue).get(self.common)
        if turns is None:
            return 0
        others = self.uttered(dialogue[:turns], seat, seat) - {self.common}
        return max(1, FULL - COST * len(others))

    def material(self, dialogue: Dialogue, seat: int) -> int:
        """Return 0: nothing material is at stake."""
        return 0

    def subgoals(self, dialogue: Dialogue, seat: int) -> dict[str, bool]:
        """Return whether each seat's last naming is right, or needed no more."""
        settled = self.settled(dialogue)
        named = {"own naming": seat, "other's naming": 1 - seat}
        return {
            name: settled or self.last_named(dialogue, who) == self.common
            for name, who in named.items()
        }

    def suggestions(self, dialogue: Dialogue, seat: int) -> tuple[str, ...]:
        """Return the namings of the seat's contacts except the last; `leave` when settled."""
        if self.settled(dialogue):
            return ("leave",)
        last = self.last_named(dialogue, seat)
        return tuple(f"act: name {name}" for name in self.names(seat) if name != last)

    def no_effect_reason(self, dialogue: Dialogue, seat: int, act: Act) -> str:
        """Return why an act that looks like a commitment has no effect, in one line; else ""."""
        bound = commitment(act)
        if bound is None:
            return ""
        if bound.verb is not Verb.NAME:
            return 'there is nothing to deal in here: name somebody, as in "act: name Ann"'
        name = self.name_in(act)
        if name is None:
            return 'no name: expected one like "act: name Ann"'
        return "" if name in self.names(seat) else f"{name} is none of your contacts"

    def facts(self, seat: int) -> tuple[str, ...]:
        """Return the companies and hobbies of a seat's contacts."""
        table = self.tables[seat]
        values = [e.company for e in table] + [e.hobby for e in table]
        return tuple(dict.fromkeys(values))


def values_in(text: str) -> tuple[str, ...]:
    """Return the companies, then the hobbies, that a text mentions."""
    spoken_words = set(words_of(text))
    known = (*_values("companies"), *_values("hobbies"))
    return tuple(value for value in known if value.lower() in spoken_words)


def _values(attribute: str) -> Sequence[str]:
    return word_list("contact", attribute)


def draw(chance: Chance) -> Contact:
    """Return a random game with two tables of equal length."""
    companies = chance.sample(_values("companies"), _NUM_VALUES)
    hobbies = chance.sample(_values("hobbies"), _NUM_VALUES)
    names = chance.sample(_values("names"), 2 * _NUM_CONTACTS - 1)
    pairs = chance.sample(list(product(companies, hobbies)), len(names))
    entries = [Entry(name, *pair) for name, pair in zip(names, pairs, strict=True)]
    first, second = entries[:_NUM_CONTACTS], entries[_NUM_CONTACTS - 1 :]
    return Contact(
        (tuple(chance.sample(first, _NUM_CONTACTS)), tuple(chance.sample(second, _NUM_CONTACTS)))
    )
