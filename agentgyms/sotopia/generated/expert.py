"""Experts for generated games: what a seat does best next, with or without hidden numbers."""

from __future__ import annotations

from fractions import Fraction
from typing import Final, TypeVar

from agentgyms.errors import BadOption
from agentgyms.sotopia.dialogue import Act, Dialogue, Kind, Rules
from agentgyms.sotopia.generated.acts import acts_of, is_question, last_act, num_turns
from agentgyms.sotopia.generated.clues import answer, told
from agentgyms.sotopia.generated.contact import Contact, Entry, values_in
from agentgyms.sotopia.generated.curves import draw_temper
from agentgyms.sotopia.generated.haggling import Haggling
from agentgyms.sotopia.generated.offers import count_stalls
from agentgyms.sotopia.generated.words import words_of
from agentgyms.sotopia.profiles import Encounter

KINDS: Final = ("best", "plain")
"""`best` knows both seats' numbers; `plain` knows what the seat's person knows.

With contacts both ask, and name whom the answers show: to name the right one at once is a guess.
"""

Outcome = TypeVar("Outcome")

_CLIMB: Final = 3
_PLAIN_TURNS: Final = 7


def actions(
    encounter: Encounter, rules: Rules, dialogue: Dialogue, seat: int, seed: int
) -> dict[str, str]:
    """Return the next action of every expert, by its kind."""
    return {kind: next_action(encounter, rules, dialogue, seat, seed, kind) for kind in KINDS}


def next_action(
    encounter: Encounter,
    rules: Rules,
    dialogue: Dialogue,
    seat: int,
    seed: int,
    kind: str = "best",
) -> str:
    """Return what an expert does at a seat, as an agent writes it.

    Args:
        encounter: With a generated game.
        rules: Of the dialogue.
        dialogue: So far.
        seat: Whose turn it is.
        seed: Of the episode, which decides how patient a scripted partner is.
        kind: One of `KINDS`.

    Raises:
        BadOption: There is no such expert, or no generated game.
    """
    game = encounter.game
    if kind not in KINDS:
        raise BadOption(f"there is no expert {kind!r}: expected one of {', '.join(KINDS)}")
    if not isinstance(game, Haggling | Contact):
        raise BadOption(f"{encounter.task_id!r} is no generated scenario: it has no expert")
    if game.settled(dialogue):
        return "leave"
    if isinstance(game, Contact):
        return _search(game, dialogue, seat)
    left = num_turns(rules, seat) - len(acts_of(dialogue, seat))
    if kind == "plain":
        leaving = "leave" in words_of(last_act(dialogue, 1 - seat).argument)
        return _haggle(game, dialogue, seat, _cautious(game, dialogue, seat), left <= 1 or leaving)
    temper = draw_temper(encounter.scenario.scenario_id, rules, 1 - seat, seed)
    offer = _known(game, dialogue, seat, temper.patience - 1)
    return _haggle(game, dialogue, seat, offer, left <= 1)


def _haggle(
    game: Haggling[Outcome], dialogue: Dialogue, seat: int, offer: Outcome, last_chance: bool
) -> str:
    """Accept what is as good as the own offer would be, and at the end what is worth anything."""
    theirs = game.table(dialogue).standing[1 - seat]
    if theirs is not None:
        worthwhile = last_chance and game.worth(seat, theirs) > 0
        if worthwhile or game.gain(seat, theirs) >= game.gain(seat, offer):
            return "act: accept"
    return f"act: offer {game.tell(seat, offer)}"


def _known(game: Haggling[Outcome], dialogue: Dialogue, seat: int, hold: int) -> Outcome:
    """Climb down to the best that the other one may take, hold it, then concede by the least."""
    other, turn = 1 - seat, len(acts_of(dialogue, seat))
    outcomes = game.outcomes()
    possible = [o for o in outcomes if game.gain(other, o) >= game.least(other)]
    most = max(min(game.gain(seat, o), game.full(seat)) for o in possible)
    given = max(game.gain(other, o) for o in possible if game.gain(seat, o) >= most)
    levels = sorted({game.gain(other, o) for o in outcomes})
    floor = levels[max(0, levels.index(given) - max(0, _CLIMB - turn))]
    made = game.table(dialogue).made[seat]
    if made and count_stalls(game, dialogue, other) >= hold:
        floor = max(floor, 1 + max(game.gain(other, o) for o in made))
    bearable = [o for o in outcomes if game.gain(seat, o) >= game.least(seat)]
    good = [o for o in bearable if game.gain(other, o) >= floor]
    return max(good or bearable, key=lambda o: (game.gain(seat, o), game.gain(other, o)))


def _cautious(game: Haggling[Outcome], dialogue: Dialogue, seat: int) -> Outcome:
    """Concede from the aim to a little above the reservation, late rather than early."""
    x = min(Fraction(1), Fraction(len(acts_of(dialogue, seat)), _PLAIN_TURNS))
    aim, least = game.aim(seat), game.least(seat) + game.step
    made = game.table(dialogue).made[1 - seat]
    return game.ask(seat, aim - x * x * max(0, aim - least), made[-1] if made else None)


def _search(game: Contact, dialogue: Dialogue, seat: int) -> str:
    own, name = game.named(dialogue, seat), _guess(game, dialogue, seat)
    if name is not None:
        return f"speak: Do you know {name}?" if own == name else f"act: name {name}"
    asked = last_act(dialogue, 1 - seat)
    if is_question(asked) and values_in(asked.argument):
        return f"speak: {answer(game, seat, asked.argument).argument}"
    left = _candidates(game, dialogue, seat)
    said = acts_of(dialogue, seat)
    new = [entry for entry in left if _question(entry) not in said]
    return f"speak: {_question((new or left)[0]).argument}"


def _guess(game: Contact, dialogue: Dialogue, seat: int) -> str | None:
    """Return the common contact where what was said shows it."""
    heard = game.uttered(dialogue, 1 - seat, seat)
    left = _candidates(game, dialogue, seat)
    if heard:
        return min(heard)
    clues = acts_of(dialogue, 1 - seat)
    for entry in left:
        if told(entry) in clues or _answers(dialogue, seat, entry) == "yes":
            return entry.name
    return left[0].name if len(left) == 1 else None


def _candidates(game: Contact, dialogue: Dialogue, seat: int) -> list[Entry]:
    table = game.tables[seat]
    left = [entry for entry in table if _answers(dialogue, seat, entry) != "no"]
    return left or list(table)


def _question(entry: Entry) -> Act:
    return Act(Kind.SPEAK, f"Do you know someone {entry.told}?")


def _answers(dialogue: Dialogue, seat: int, entry: Entry) -> str:
    """Return the first word of the other one's answer to the question for an entry."""
    waiting = False
    for turn in dialogue:
        for who, act in turn:
            if who != seat and waiting:
                return (words_of(act.argument) or [""])[0]
        waiting = waiting or (seat, _question(entry)) in turn
    return ""
