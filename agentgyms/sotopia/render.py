"""What each viewer reads: the context, the turns, and an agent's and the judge's history.

The texts are those of `sotopia` 0.1.4, byte by byte. Departs from it: what people say and do in
their turns is plain text, where the package reads it as XML; and the judge is not shown who does
nothing, but all that is said and done, where the package drops whatever has the words "did nothing"
in it, so that an agent can hide from its judge what it says to its partner.
"""

from __future__ import annotations

import re
from typing import Final

from agentgyms.sotopia.dialogue import Dialogue, Kind, Turn
from agentgyms.sotopia.markup import show
from agentgyms.sotopia.profiles import Encounter, Person, Relationship

_GENDERS: Final = {"Man": "male", "Woman": "female", "Nonbinary": "nonbinary"}


def context(encounter: Encounter, viewer: int | None) -> str:
    """Return the situation, the people and their goals.

    Args:
        encounter: Who meets whom.
        viewer: A seat, which does not see the other one's goal and of the other one only what
            their relationship allows; None for the environment and the judge, who see everything.
    """
    names = [person.name for person in encounter.people]
    lines = [
        "Here is the context of this interaction:",
        f"Scenario: {show(encounter.scenario.text, viewer)}",
        f"Participants: {' and '.join(names)}",
    ]
    for seat, name in enumerate(names):
        seen = show(_biography(encounter, seat), viewer)
        lines.append(f"{name}'s background: {seen or 'Unknown'}")
    for seat, name in enumerate(names):
        hidden = viewer is not None and viewer != seat
        lines.append(f"{name}'s goal: {'Unknown' if hidden else _goal(encounter, seat, viewer)}")
    return re.sub("\n +", "\n", "\n".join(lines) + "\n").strip()


def goal(encounter: Encounter, seat: int) -> str:
    """Return a seat's own goal as it reads it."""
    return _goal(encounter, seat, seat)


def first_observation(encounter: Encounter, viewer: int | None) -> str:
    """Return what a viewer reads before turn 0."""
    return f"\n{context(encounter, viewer)}\nConversation Starts:\n"


def line(encounter: Encounter, number: int, turn: Turn) -> str:
    """Return what both seats read after a turn; who does nothing is not mentioned.

    Args:
        encounter: Who meets whom.
        number: Of the turn, from 0.
        turn: Who did what in it.
    """
    return f"Turn #{number}: {';'.join(_done(encounter, turn))}\n"


def history(encounter: Encounter, dialogue: Dialogue, viewer: int) -> str:
    """Return all that a seat has read so far, as an agent's prompt has it."""
    lines = [line(encounter, number, turn) for number, turn in enumerate(dialogue)]
    return "\n".join([first_observation(encounter, viewer), *lines])


def judged(encounter: Encounter, dialogue: Dialogue) -> str:
    """Return what the judge reads; its turns are counted from 1.

    Who does nothing in a turn is not mentioned there.
    """
    messages = [context(encounter, None)]
    for number, turn in enumerate(dialogue, start=1):
        messages.append(f"Turn #{number}")
        messages += _done(encounter, turn)
    return "\n".join(messages)


def _done(encounter: Encounter, turn: Turn) -> list[str]:
    return [
        f"{encounter.people[seat].name} {act.words()}"
        for seat, act in turn
        if act.kind is not Kind.NONE
    ]


def _goal(encounter: Encounter, seat: int, viewer: int | None) -> str:
    return show(f"<root viewer='agent_{seat}'>{encounter.scenario.goals[seat]}</root>", viewer)


def _biography(encounter: Encounter, seat: int) -> str:
    """Return a person's biography; what only they may see is marked."""
    person = encounter.people[seat]
    public = f"{_portrait(person)} {person.gender_pronoun} pronouns. {person.public_info}"
    values = f"Personality and values description: {person.personality_and_values}"
    secret = f"{person.first_name}'s secrets: {person.secret}"
    own = f"<p viewer='agent_{seat}'>"
    match encounter.scenario.relationship:
        case Relationship.STRANGER:
            return f"<root>{own}{person.name} {public} {values} {secret}</p></root>"
        case Relationship.KNOW_BY_NAME:
            return f"{person.name} {own}{public} {values} {secret}</p>"
        case Relationship.ACQUAINTANCE:
            return f"{person.name} {public} {own}{values} {secret}</p>"
        case _:
            return f"{person.name} {public} {values} {own}{secret}</p>"


def _portrait(person: Person) -> str:
    gender = _GENDERS.get(person.gender, "")
    return f"is a {person.age}-year-old {gender} {person.occupation.lower()}."
