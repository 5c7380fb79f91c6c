"""How the scripted partner looks for a common contact."""

from __future__ import annotations

from typing import Final

from agentgyms.chance import Chance
from agentgyms.sotopia.dialogue import Act, Dialogue, Kind
from agentgyms.sotopia.generated.acts import acts_of, last_act
from agentgyms.sotopia.generated.contact import Contact, Entry, values_in
from agentgyms.sotopia.generated.words import listed

_ALL_TOLD: Final = Act(Kind.SPEAK, "I have told you of all my contacts. Whom do you know?")


def agreed(game: Contact, dialogue: Dialogue, seat: int) -> bool:
    """Return whether both have agreed on somebody whom this seat knows."""
    return not game.agreements(dialogue).keys().isdisjoint(game.names(seat))


def recognised(game: Contact, dialogue: Dialogue, seat: int) -> Act | None:
    """Return to name a contact of the seat's own whose name the other one has uttered."""
    heard = game.uttered(dialogue, 1 - seat, seat) - {game.named(dialogue, seat)}
    return Act(Kind.ACTION, f"name {min(heard)}") if heard else None


def next_clue(game: Contact, dialogue: Dialogue, seat: int, chance: Chance) -> Act:
    """Return what the partner says, in this order.

    It says that it does not know somebody just named; answers words on companies and hobbies; else
    tells of a contact of which it has not told, without the name.

    Args:
        game: Of which only the seat's own table is read.
        dialogue: So far.
        seat: Its own.
        chance: What the order of its contacts is drawn with.
    """
    last = last_act(dialogue, 1 - seat)
    stranger = game.name_in(last)
    if stranger and stranger not in game.names(seat):
        return Act(Kind.SPEAK, f"I do not know {stranger}.")
    if last.kind is Kind.SPEAK and values_in(last.argument):
        return answer(game, seat, last.argument)
    said, table = acts_of(dialogue, seat), game.tables[seat]
    left = [act for entry in chance.sample(table, len(table)) if (act := told(entry)) not in said]
    return left[0] if left else _ALL_TOLD


def answer(game: Contact, seat: int, question: str) -> Act:
    """Return whether the seat has a contact with the companies and hobbies of a question."""
    values = values_in(question)
    fits = any(entry.fits(values) for entry in game.tables[seat])
    wanted = listed(values)
    return Act(Kind.SPEAK, f"Yes, {wanted}." if fits else f"No, not {wanted}.")


def told(entry: Entry) -> Act:
    """Return the words that tell of a contact without its name."""
    return Act(Kind.SPEAK, f"I know someone {entry.told}.")


def count_stalls(game: Contact, dialogue: Dialogue, seat: int) -> int:
    """Return how many turns of the other one since its last progress.

    Progress is something not said before that holds a company, a hobby or somebody's name.
    """
    seen: set[Act] = set()
    stalls = 0
    for act in acts_of(dialogue, 1 - seat):
        new = act not in seen and bool(values_in(act.argument) or game.name_in(act))
        stalls = 0 if new else stalls + 1
        seen.add(act)
    return stalls
