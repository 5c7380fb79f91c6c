"""The scripted partner's strategy for finding a common contact."""

from __future__ import annotations

from typing import Final

from agentgyms.core.randomness import Chance
from agentgyms.envs.sotopia.dialogue import Act, Dialogue, Kind
from agentgyms.envs.sotopia.generated.acts import acts_of, last_act
from agentgyms.envs.sotopia.generated.contact import Contact, Entry, values_in
from agentgyms.envs.sotopia.generated.words import join_words

_NO_MORE_CLUES: Final = Act(Kind.SPEAK, "I have told you of all my contacts. Whom do you know?")


def has_agreed(game: Contact, dialogue: Dialogue, seat: int) -> bool:
    """Return whether both have named the same contact of this seat."""
    return not game.agreements(dialogue).keys().isdisjoint(game.names(seat))


def name_shared_contact(game: Contact, dialogue: Dialogue, seat: int) -> Act | None:
    """Return the act of naming a contact that the other seat has mentioned, or None."""
    mentioned = game.uttered(dialogue, 1 - seat, seat) - {game.last_named(dialogue, seat)}
    return Act(Kind.ACTION, f"name {min(mentioned)}") if mentioned else None


def next_clue(game: Contact, dialogue: Dialogue, seat: int, chance: Chance) -> Act:
    """Return the partner's next utterance, from its own table alone."""
    last = last_act(dialogue, 1 - seat)
    stranger = game.name_in(last)
    if stranger and stranger not in game.names(seat):
        return Act(Kind.SPEAK, f"I do not know {stranger}.")
    if last.kind is Kind.SPEAK and values_in(last.argument):
        return answer(game, seat, last.argument)
    previous_acts, table = acts_of(dialogue, seat), game.tables[seat]
    left = [
        act
        for entry in chance.sample(table, len(table))
        if (act := describe(entry)) not in previous_acts
    ]
    return left[0] if left else _NO_MORE_CLUES


def answer(game: Contact, seat: int, question: str) -> Act:
    """Return the answer: whether the seat has a contact with a question's companies and hobbies."""
    values = values_in(question)
    fits = any(entry.fits(values) for entry in game.tables[seat])
    wanted = join_words(values)
    return Act(Kind.SPEAK, f"Yes, {wanted}." if fits else f"No, not {wanted}.")


def describe(entry: Entry) -> Act:
    """Return the utterance that describes a contact without its name."""
    return Act(Kind.SPEAK, f"I know someone {entry.description}.")


def count_stalls(game: Contact, dialogue: Dialogue, seat: int) -> int:
    """Return the number of the other seat's turns since its last progress.

    Progress is a new utterance that contains a company or a hobby, or a new naming.
    """
    seen: set[Act] = set()
    stalls = 0
    for act in acts_of(dialogue, 1 - seat):
        new = act not in seen and bool(values_in(act.argument) or game.name_in(act))
        stalls = 0 if new else stalls + 1
        seen.add(act)
    return stalls
