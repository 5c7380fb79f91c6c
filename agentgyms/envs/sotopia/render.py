"""Texts for each viewer: the context, the turns, and the histories of agents and judge.

The texts are those of `sotopia` 0.1.4, byte by byte. Differences: acts are plain text, where the
package parses them as XML; and the judge sees every act except `none`, where the package drops each
text that contains "did nothing", so that an agent can hide an utterance from its judge.
"""

from __future__ import annotations

import re
from typing import Final

from agentgyms.envs.sotopia.dialogue import Dialogue, Kind, Turn
from agentgyms.envs.sotopia.markup import visible_text
from agentgyms.envs.sotopia.profiles import Encounter, Person, Relationship

_GENDERS: Final = {"Man": "male", "Woman": "female", "Nonbinary": "nonbinary"}


def context(encounter: Encounter, viewer: int | None) -> str:
    """Return the context for a seat, without what is hidden from it, or (None) for the judge."""
    names = [person.name for person in encounter.people]
    lines = [
        "Here is the context of this interaction:",
        f"Scenario: {visible_text(encounter.scenario.text, viewer)}",
        f"Participants: {' and '.join(names)}",
    ]
    for seat, name in enumerate(names):
        seen = visible_text(_biography(encounter, seat), viewer)
        lines.append(f"{name}'s background: {seen or 'Unknown'}")
    for seat, name in enumerate(names):
        hidden = viewer is not None and viewer != seat
        lines.append(f"{name}'s goal: {'Unknown' if hidden else _goal(encounter, seat, viewer)}")
    return re.sub("\n +", "\n", "\n".join(lines) + "\n").strip()


def goal(encounter: Encounter, seat: int) -> str:
    """Return a seat's goal as that seat sees it."""
    return _goal(encounter, seat, seat)


def first_observation(encounter: Encounter, viewer: int | None) -> str:
    """Return the text that a viewer sees before turn 0."""
    return f"\n{context(encounter, viewer)}\nConversation Starts:\n"


def turn_text(encounter: Encounter, number: int, turn: Turn) -> str:
    """Return the line that both seats see after turn `number` (from 0), without `none` acts."""
    return f"Turn #{number}: {';'.join(_act_texts(encounter, turn))}\n"


def history(encounter: Encounter, dialogue: Dialogue, viewer: int) -> str:
    """Return a seat's full history, as in an agent's prompt."""
    lines = [turn_text(encounter, number, turn) for number, turn in enumerate(dialogue)]
    return "\n".join([first_observation(encounter, viewer), *lines])


def judge_history(encounter: Encounter, dialogue: Dialogue) -> str:
    """Return the history for the judge, without `none` acts; turns are counted from 1."""
    messages = [context(encounter, None)]
    for number, turn in enumerate(dialogue, start=1):
        messages.append(f"Turn #{number}")
        messages += _act_texts(encounter, turn)
    return "\n".join(messages)


def _act_texts(encounter: Encounter, turn: Turn) -> list[str]:
    return [
        f"{encounter.people[seat].name} {act.describe()}"
        for seat, act in turn
        if act.kind is not Kind.NONE
    ]


def _goal(encounter: Encounter, seat: int, viewer: int | None) -> str:
    return visible_text(
        f"<root viewer='agent_{seat}'>{encounter.scenario.goals[seat]}</root>", viewer
    )


def _biography(encounter: Encounter, seat: int) -> str:
    """Return a person's biography, with mark-up around what only that person sees."""
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
