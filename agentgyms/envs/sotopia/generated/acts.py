"""Queries on the acts of a dialogue, and commitments: offers, acceptances, rejections, names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from agentgyms.envs.sotopia.dialogue import NOTHING, Act, Dialogue, Kind, Rules
from agentgyms.envs.sotopia.generated.words import word_set, words_of


class Verb(StrEnum):
    """The kinds of commitment."""

    OFFER = "offer"
    ACCEPT = "accept"
    REJECT = "reject"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class Commitment:
    """A verb at the beginning of an action, and the text after it."""

    verb: Verb
    rest: str


_VERB: Final = re.compile(r"\s*(offer|accept|reject|name)\b\s*:?", re.I)
_LONGEST: Final = 200
_PLAIN: Final = frozenset(["", "it", "offer", "the offer", "your offer", "deal", "the deal"])


def verb_of(act: Act) -> Verb | None:
    """Return the verb at the beginning of an `action`, or None."""
    found = _VERB.match(act.argument) if act.kind is Kind.ACTION else None
    return Verb(found[1].lower()) if found else None


def commitment(act: Act) -> Commitment | None:
    """Parse the commitment of an act; None unless it is an `action` of at most 200 characters.

    `accept` and `reject` are alone or before `it`, `(the/your) offer` or `(the) deal`; before
    anything else, such as a price, they are no commitment.
    """
    found = _VERB.match(act.argument) if act.kind is Kind.ACTION else None
    if not found or len(act.argument) > _LONGEST:
        return None
    verb, rest = Verb(found[1].lower()), act.argument[found.end() :].strip(" \t\n.!")
    if verb in (Verb.ACCEPT, Verb.REJECT) and rest.lower() not in _PLAIN:
        return None
    return Commitment(verb, rest)


def acts_of(dialogue: Dialogue, seat: int) -> list[Act]:
    """Return a seat's acts, in order."""
    return [act for turn in dialogue for who, act in turn if who == seat]


def last_act(dialogue: Dialogue, seat: int) -> Act:
    """Return a seat's last act; `NOTHING` before its first."""
    acts = acts_of(dialogue, seat)
    return acts[-1] if acts else NOTHING


def num_turns(rules: Rules, seat: int) -> int:
    """Return a seat's number of turns in a dialogue of maximum length."""
    return sum(seat in rules.acting(number) for number in range(rules.max_turns))


def is_insult(act: Act) -> bool:
    """Return whether an act contains an insult of the word list."""
    return not word_set("manners", "insults").isdisjoint(words_of(act.argument))


def is_question(act: Act) -> bool:
    """Return whether an act is a spoken question."""
    return act.kind is Kind.SPEAK and "?" in act.argument
